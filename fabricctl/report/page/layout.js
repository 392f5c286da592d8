// layout.js - positions of the boxes. Sizes are those of text of 11 pixels.
"use strict";

const PAD = 12, HEAD = 20, GAP = 12, LINKS = 46, ONE_LINE = 1800, ONE_LINE_NARROW = 460;
const oneLine = () => isNarrow() ? ONE_LINE_NARROW : ONE_LINE;

const widthOf = text => Math.min(150, 14 + 6.6 * text.length);

function boxLines(item) {
  const { switches, hosts } = item.n;
  return [`▸ ${item.name}`, [switches > 1 ? counted(switches, "switch") : "", hosts ? counted(hosts, "host") : ""].filter(Boolean).join(", ")];
}

// Set w and h of each item, and x and y within its parent.
function measure(item) {
  if (item.kind !== "block") {
    item.w = widthOf(item.label);
    item.h = item.kind === "switch" ? 26 : item.feet > 1 ? 25 : 19;
  } else if (!item.open) {
    const lines = boxLines(item);
    item.w = Math.max(widthOf(lines[0]), 12 + 5.4 * lines[1].length, 16 + 5.4 * badLine(item).length);
    item.h = badLine(item) !== "" ? 48 : 36;
  } else {
    item.shown.forEach(measure);
    ({ rows: layRows, ring: layRing, grid: layGrid })[item.layout](item);
  }
}

// Give all folded items one size.
function sameSize(items) {
  const folded = items.filter(item => !item.open), w = Math.max(...folded.map(item => item.w)), h = Math.max(...folded.map(item => item.h));
  for (const item of folded)
    Object.assign(item, { w, h });
}

// Place items from left to right in centred lines of at most `width`, with about the same number in each; return the
// end of the last line.
function flow(items, width, top) {
  const all = items.reduce((sum, item) => sum + item.w + GAP, 0), even = Math.ceil(items.length / Math.ceil(all / (width + GAP + 1)));
  const lines = [];
  let line = null;
  for (const item of items) {
    if (line === null || line.items.length >= even || line.w + GAP + item.w > width + 1)
      lines.push(line = { items: [], w: -GAP, h: 0 });
    line.items.push(item);
    item.x = line.w + GAP;
    line.w += GAP + item.w;
    line.h = Math.max(line.h, item.h);
  }
  let y = top;
  for (const { items: its, w, h } of lines) {
    for (const item of its)
      Object.assign(item, { x: item.x + (width - w) / 2, y });
    y += h + GAP;
  }
  return items.length > 0 ? y - GAP : top;
}

function niceWidth(items, ratio) {
  const area = items.reduce((sum, item) => sum + (item.w + GAP) * (item.h + GAP), 0);
  return Math.max(Math.sqrt(area * ratio), 0, ...items.map(item => item.w));
}

// Place switches, below them blocks, below them hosts.
function layRows(block) {
  const { switches, blocks, hosts } = block;
  [switches, blocks, hosts].forEach(sameSize);
  const ratio = isNarrow() ? 0.8 : block.parent === null ? 5 : 2.2;
  const lineOf = items => items.reduce((sum, item) => sum + item.w + GAP, -GAP), across = lineOf(switches);
  const least = Math.max(lineOf(blocks) <= oneLine() ? lineOf(blocks) : niceWidth(blocks, ratio), niceWidth(hosts, 1.6));
  const width = Math.max(least, Math.min(across, oneLine()), widthOf(block.name) + 20);
  let y = PAD + HEAD;
  for (const part of [switches, blocks, hosts]) {
    if (part.length === 0)
      continue;
    const between = switches.length > 0 && part !== switches && !(part === hosts && switches.length === 1 && blocks.length === 0);
    y = flow(part, width, y + (between ? LINKS : y > PAD + HEAD ? GAP : 0));
  }
  for (const item of block.shown)
    item.x += PAD;
  block.w = width + 2 * PAD;
  block.h = y + PAD;
}

// Return the positions of boxes on an ellipse, one after the other with a gap between; null: the ellipse is too small.
function ringAngles(items, rx, ry, gap) {
  const placed = [], angles = [];
  for (let i = 0, angle = -Math.PI / 2; i < items.length; i++) {
    const { w, h } = items[i];
    let x, y;
    for (;;) {
      [x, y] = [rx * Math.cos(angle), ry * Math.sin(angle)];
      if (!placed.some(other => Math.abs(x - other.x) < (w + other.w) / 2 + gap && Math.abs(y - other.y) < (h + other.h) / 2 + gap))
        break;
      if ((angle += 0.01) > 1.5 * Math.PI)
        return null;
    }
    placed.push({ x, y, w, h });
    angles.push(angle);
  }
  return angles;
}

function layRing(block) {
  const items = [...block.switches, ...block.blocks];
  sameSize(items);
  const ratio = isNarrow() ? 0.6 : 1.35; // as wide as high on the page
  let high = items.length < 2 ? 0 : items.reduce((sum, { h }) => sum + h + GAP, 0) / 4 / (1 + ratio), gap = 10 * GAP, angles = null;
  while (ringAngles(items, high * ratio, high, GAP) === null)
    high *= 1.05;
  while (angles === null) // evenly: the gaps share the remaining space
    angles = ringAngles(items, high * ratio, high, gap = Math.max(GAP, gap - 4));
  items.forEach((item, i) => Object.assign(item, { x: high * ratio * Math.cos(angles[i]) - item.w / 2, y: high * Math.sin(angles[i]) - item.h / 2 }));
  const left = Math.min(...items.map(item => item.x)), top = Math.min(...items.map(item => item.y));
  for (const item of items)
    Object.assign(item, { x: item.x - left + PAD, y: item.y - top + PAD + HEAD });
  block.w = Math.max(...items.map(item => item.x + item.w), widthOf(block.name)) + PAD;
  block.h = Math.max(...items.map(item => item.y + item.h));
  if (block.hosts.length > 0) {
    sameSize(block.hosts);
    block.h = flow(block.hosts, block.w - 2 * PAD, block.h + GAP);
    block.hosts.forEach(item => { item.x += PAD; });
  }
  block.h += PAD;
}

// Place by coordinates, the first to the right and the second downwards; columns and rows are as wide as their
// contents.
function layGrid(block) {
  sameSize(block.blocks);
  const sizes = [[], []], placed = block.blocks.filter(item => item.at);
  for (const { at, w, h } of placed) {
    sizes[0][at[0]] = Math.max(sizes[0][at[0]] ?? 0, w);
    sizes[1][at[1]] = Math.max(sizes[1][at[1]] ?? 0, h);
  }
  const starts = sizes.map((list, axis) => {
    let next = axis === 0 ? PAD : PAD + HEAD;
    return [...list.keys()].map(i => (next += (list[i] ?? 0) + 26) - (list[i] ?? 0) - 26).concat(next);
  });
  for (const item of placed)
    Object.assign(item, { x: starts[0][item.at[0]], y: starts[1][item.at[1]] });
  block.w = Math.max(starts[0][starts[0].length - 1] - 26 + PAD, widthOf(block.name) + PAD);
  const others = [...block.blocks.filter(item => !item.at), ...block.switches, ...block.hosts];
  block.h = flow(others, block.w - 2 * PAD, starts[1][starts[1].length - 1]) + PAD;
  others.forEach(item => { item.x += PAD; });
}

// Return all visible items, outermost first, with their positions in the drawing.
function layOut(root) {
  const seen = [];
  const walk = (item, x, y) => {
    Object.assign(item, { left: x, top: y });
    seen.push(item);
    if (item.kind === "block" && item.open)
      item.shown.forEach(inner => walk(inner, x + inner.x, y + inner.y));
  };
  measure(root);
  walk(root, 0, 0);
  return seen;
}
