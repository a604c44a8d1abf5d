"""What the server counts, in the text format of Prometheus.

All values of labels come from tables of ours: no tenant, no address, and nothing that
anybody said.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from threading import Lock

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX = "backstory_"
# The upper bounds of the buckets of times, in seconds.
_TIMES_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

Labels = tuple[tuple[str, str], ...]

# Each figure: its name, its kind and what it is.
_FIGURES = (
    ("requests_total", "counter", "Requests that were answered."),
    ("request_seconds", "histogram", "How long answering took."),
    ("received_bytes_total", "counter", "Bytes of requests, as they were sent."),
    ("sent_bytes_total", "counter", "Bytes of answers."),
    ("refused_total", "counter", "Requests that were refused, by reason."),
    ("pushed_messages_total", "counter", "Messages that were pushed and are new."),
    ("pushed_sessions_total", "counter", "Parts of sessions that were pushed."),
    ("jobs_total", "counter", "Jobs that were done, by kind and outcome."),
    ("requests_in_flight", "gauge", "Requests that are being answered."),
    ("open_memories", "gauge", "Memories of tenants that are open."),
    ("signed_in", "gauge", "Browsers that are signed in."),
    ("ready", "gauge", "1 if the server takes requests, 0 while it ends."),
)


class Metrics:
    """The figures of one process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: dict[str, dict[Labels, float]] = {}
        self._times: dict[Labels, tuple[list[int], list[float]]] = {}
        self._gauges: dict[str, Callable[[], float]] = {}

    def add(self, figure: str, number: float = 1, **labels: str) -> None:
        """Count something."""
        key = tuple(sorted(labels.items()))
        with self._lock:
            counts = self._counts.setdefault(figure, {})
            counts[key] = counts.get(key, 0) + number

    def time(self, seconds: float, **labels: str) -> None:
        """Count how long a request took."""
        key = tuple(sorted(labels.items()))
        with self._lock:
            classes, total = self._times.setdefault(
                key, ([0] * (len(_TIMES_S) + 1), [0.0])
            )
            classes[bisect_left(_TIMES_S, seconds)] += 1
            total[0] += seconds

    def gauge(self, figure: str, read: Callable[[], float]) -> None:
        """Have a figure read whenever the metrics are rendered."""
        self._gauges[figure] = read

    def render(self) -> str:
        """All figures, one line for each."""
        with self._lock:
            counts = {name: dict(each) for name, each in self._counts.items()}
            times = {key: (list(c), t[0]) for key, (c, t) in self._times.items()}
        lines: list[str] = []
        for name, kind, summary in _FIGURES:
            lines += [
                f"# HELP {_PREFIX}{name} {summary}",
                f"# TYPE {_PREFIX}{name} {kind}",
            ]
            if kind == "histogram":
                lines += _render_times(name, times)
            elif kind == "gauge":
                value = self._gauges[name]() if name in self._gauges else 0
                lines.append(f"{_PREFIX}{name} {value:g}")
            else:
                lines += [
                    f"{_PREFIX}{name}{_render_labels(key)} {value:.15g}"
                    for key, value in sorted(counts.get(name, {}).items())
                ]
        return "\n".join(lines) + "\n"


def _render_times(
    name: str, times: Mapping[Labels, tuple[list[int], float]]
) -> Iterator[str]:
    for key, (classes, total) in sorted(times.items()):
        so_far = 0
        for end, count in zip((*_TIMES_S, float("inf")), classes, strict=True):
            so_far += count
            shown = "+Inf" if end == float("inf") else f"{end:g}"
            labels = _render_labels((*key, ("le", shown)))
            yield f"{_PREFIX}{name}_bucket{labels} {so_far}"
        yield f"{_PREFIX}{name}_sum{_render_labels(key)} {total:.6f}"
        yield f"{_PREFIX}{name}_count{_render_labels(key)} {so_far}"


def _render_labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels) + "}"
