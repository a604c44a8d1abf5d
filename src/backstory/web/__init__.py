"""The page: search, read and edit the memory in a browser, on this machine only.

Pages are HTML that the server renders, and work without JavaScript. Scripts only fetch
a part of the same page and replace the old one with it. What conversations say is
always escaped by the templates; the one exception is the HTML that ``prose`` makes.
"""

DEFAULT_PORT = 7718
