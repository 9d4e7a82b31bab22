"""Bar charts as SVG, without a library: the same bytes for the same numbers."""

from html import escape
from math import ceil, floor, log10

from .results import short

ROW, TOP, LEFT, RIGHT, WIDTH = 26, 58, 150, 90, 760
OURS, FLOORS, OTHERS = "#2f6f4f", "#8a8f98", "#b9c2cc"


def bars(title, unit, rows):
    """Horizontal bars on a logarithmic scale. `rows` are pairs of a name and a value."""
    rows = [(name, value) for name, value in rows if value]
    if not rows:
        return None
    low = 10 ** floor(log10(min(value for _, value in rows)))
    high = 10 ** ceil(log10(max(value for _, value in rows) * 1.001))
    span = WIDTH - LEFT - RIGHT
    at = lambda value: LEFT + span * log10(value / low) / max(log10(high / low), 1)
    height = TOP + ROW * len(rows) + 34
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="24" font-size="15" font-weight="600" fill="#1c2024">{escape(title)}</text>',
        f'<text x="12" y="42" fill="#60646c">{escape(unit)}, logarithmic; less is better</text>',
    ]
    bottom = TOP + ROW * len(rows)
    tick = low
    while tick <= high * 1.001:
        x = at(tick)
        out.append(f'<line x1="{x:.1f}" y1="{TOP - 4}" x2="{x:.1f}" y2="{bottom}" stroke="#e3e6ea"/>')
        out.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle" fill="#60646c">{short(tick)}</text>')
        tick *= 10
    for i, (name, value) in enumerate(rows):
        y = TOP + ROW * i
        colour = OURS if name.startswith("nuncio") else FLOORS if name.startswith("floor") else OTHERS
        out.append(f'<text x="{LEFT - 8}" y="{y + 17}" text-anchor="end" fill="#1c2024">{escape(name)}</text>')
        out.append(f'<rect x="{LEFT}" y="{y + 4}" width="{max(at(value) - LEFT, 2):.1f}" height="{ROW - 8}" '
                   f'fill="{colour}"/>')
        out.append(f'<text x="{at(value) + 6:.1f}" y="{y + 17}" fill="#1c2024">{short(value)}</text>')
    return "\n".join([*out, "</svg>", ""])
