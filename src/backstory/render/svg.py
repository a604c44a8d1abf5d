"""What pictures in SVG share: text, and colours for light and dark pages."""

# Not from xml.sax.saxutils, which imports urllib and SSL.
from html import escape

from backstory.text.escape import neutralize

STYLE = """
    text { font: 13px system-ui, sans-serif; fill: #1f2328 }
    .title { font-size: 17px; font-weight: 600 }
    .head { font-weight: 600 }
    .faint { fill: #59636e; font-size: 12px }
    .grid { stroke: #d1d9e0 }
    .page { fill: #ffffff }
    .c0 { fill: #0b3d91 } .c1 { fill: #3f7fd9 } .c2 { fill: #a9c8f5 }
    .c3 { fill: #1a7f5a }
    .l0 { fill: #ebedf0 } .l1 { fill: #a9c8f5 } .l2 { fill: #6ba0ea }
    .l3 { fill: #3f7fd9 } .l4 { fill: #0b3d91 }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc }
      .faint { fill: #9198a1 }
      .grid { stroke: #3d444d }
      .page { fill: #0d1117 }
      .c0 { fill: #cfe2ff } .c1 { fill: #5b9bf0 } .c2 { fill: #27508f }
      .c3 { fill: #4cc38a }
      .l0 { fill: #21262d } .l1 { fill: #27508f } .l2 { fill: #3f7fd9 }
      .l3 { fill: #7fb2f7 } .l4 { fill: #cfe2ff }
    }
"""


def draw_text(
    x: int, y: int, text: str, style: str = "", *, anchor: str = "start"
) -> str:
    attributes = f' class="{style}"' if style else ""
    return (
        f'  <text{attributes} x="{x}" y="{y}" text-anchor="{anchor}">'
        f"{to_xml(text)}</text>"
    )


def to_xml(text: str) -> str:
    """Text for XML, which has no place for control characters."""
    sound = neutralize(text).translate({0xFFFE: "\ufffd", 0xFFFF: "\ufffd"})
    return escape(sound, quote=False)
