"""SCORE_PARTS: what each number says that a score was computed from, in a few words."""

SCORE_PARTS = {
    "words": "how well its words match, compared with the best match",
    "meaning": "how near its meaning is, compared with the nearest",
    "session": "how well its conversation matches as a whole",
    "beside": "what the messages around it add",
    "phrase": "1 if it contains the query word for word",
    "day": "1 if it was said on a day that the query names",
    "fit": "how well it matches, all in all",
    "source": "weight of its kind: notes count more than messages",
    "role": "weight of who said it: tools count less than people and answers",
    "age": "weight of its age: what is newer counts a little more",
    "exact": "1 if it is an exact match, which comes first",
}
# The score is not computed from these; they show where the others come from.
RAW_PARTS = {
    "bm25": "the score of its words",
    "cosine": "the nearness of its meaning",
    "passage": "the nearness of its best passage",
    "coverage": "the share of the query that its words cover",
    "rarity": "the same, where rare words count more",
    "agentic": "1 if the agent used tools in that conversation",
}
