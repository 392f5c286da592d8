// draw.js - the drawing of a fabric: boxes and links, with the mouse and with the keyboard.
"use strict";

class Drawing {
  constructor(select) {
    this.svg = d3.select("#drawing");
    this.select = select;
    this.view = this.svg.append("g");
    for (const layer of ["rooms", "links", "boxes"])
      this[layer] = this.view.append("g");
    this.zoom = d3.zoom().scaleExtent([0.5, 60]).on("zoom", event => this.view.attr("transform", (d3.event ?? event).transform))
      .filter(event => {
        const { type, ctrlKey, button } = d3.event ?? event;
        return type === "wheel" ? ctrlKey : !button;
      });
    this.svg.call(this.zoom).on("dblclick.zoom", null);
    this.svg.node().addEventListener("keydown", event => this.#key(event));
    addEventListener("resize", () => this.#size());
    addEventListener("beforeprint", () => this.view.attr("transform", null));
    addEventListener("afterprint", () => this.view.attr("transform", d3.zoomTransform(this.svg.node())));
  }

  show(plane) {
    this.plane = plane;
    this.fold = new Fold(plane);
    this.current = this.selected = null;
    this.draw();
    this.fit();
  }

  draw() {
    this.seen = layOut(this.fold.root).slice(1);
    if (!this.seen.includes(this.current))
      this.current = this.seen[0] ?? null;
    this.#size();
    this.#boxes(this.rooms, this.seen.filter(item => item.open));
    this.#links();
    this.#boxes(this.boxes, this.seen.filter(item => !item.open));
    this.#mark();
  }

  // As high as the whole drawing is when it is as wide as there is room.
  #size() {
    const { w, h } = this.fold.root, room = this.svg.node().clientWidth * h / w;
    this.svg.attr("viewBox", `0 0 ${w} ${h}`).style("height", `${Math.max(innerHeight * 0.4, Math.min(room, innerHeight * 0.75))}px`);
  }

  #boxes(layer, items) {
    const drawing = this;
    layer.selectAll("g").data(items).join(enter => {
      const g = enter.append("g").on("click", function () { drawing.#act(d3.select(this).datum()); });
      g.append("title");
      g.append("rect").attr("rx", 5);
      return g;
    }).attr("transform", item => `translate(${item.left},${item.top})`).each(function (item) { drawing.#box(d3.select(this), item); });
  }

  #box(g, item) {
    const down = this.#down(item), block = item.kind === "block", lines = block && !item.open ? boxLines(item) : [block ? `▾ ${item.name}` : item.name];
    g.attr("class", `item ${item.kind}${item.open ? " open" : ""}${down && !item.open ? " down" : ""}`).attr("role", "button")
      .attr("aria-expanded", block ? item.open : null).attr("aria-label", this.describe(item));
    g.select("title").text(this.describe(item));
    g.select("rect").attr("width", item.w).attr("height", item.h).attr("class", item.kind === "host" && !down ? this.#ownRate(item) : null);
    if (block && !item.open && item.n.down)
      lines.push(`${item.n.down} down`);
    const middle = !item.open, first = item.open ? 15 : lines.length > 1 ? 15 : item.h / 2 + 4;
    g.selectAll("text").data(lines).join("text").text((line, i) => i === 0 ? shortened(line, item.w - 8) : line)
      .attr("class", (_, i) => i === 0 ? null : i === 1 ? "small" : "alarm")
      .attr("x", middle ? item.w / 2 : 10).attr("text-anchor", middle ? "middle" : "start").attr("y", (_, i) => first + 14 * i);
  }

  // A host whose only link stays within its block has that link's colour, and no line.
  #ownRate(item) {
    const links = this.plane.hostLinks[item.index];
    return links.length === 1 ? `rate-${rateClass(this.plane, this.plane.links.mbps[links[0]])}` : null;
  }

  #down(item) {
    return item.kind === "block" ? item.n.down > 0 : item.kind === "switch" ? this.plane.switches.missing[item.index] : this.plane.hostDown[item.index];
  }

  describe(item) {
    const down = this.#down(item);
    if (item.kind !== "block")
      return `${item.kind} ${item.name}${down ? item.kind === "host" ? ", down" : ", missing" : ""}`;
    return `${item.name}, ${item.open ? "unfolded" : "folded"}: ${counted(item.n.switches, "switch")}, ${counted(item.n.hosts, "host")}` +
      (down ? `, ${item.n.down} down` : "");
  }

  // One line for all cables between the same two boxes.
  #bundles() {
    const { links, linkBad, nLinks, hostOf } = this.plane, seen = this.fold.representatives(), bundles = new Map();
    const number = new Map(this.seen.map((item, i) => [item, i]));
    const boxOf = end => end === null ? undefined : end >= 0 ? seen.switch[end] : seen.host[hostOf[-1 - end]];
    for (let i = 0; i < nLinks; i++) {
      const a = boxOf(links.a[i]), b = boxOf(links.b[i]);
      if (a === b || !a || !b || this.#inside(a, b) || this.#inside(b, a))
        continue;
      const [from, to] = number.get(a) < number.get(b) ? [a, b] : [b, a], key = number.get(from) * this.seen.length + number.get(to);
      if (!bundles.has(key))
        bundles.set(key, { from, to, n: 0, bad: 0, rates: new Map() });
      const bundle = bundles.get(key), mbps = links.mbps[i];
      bundle.n++;
      bundle.bad += linkBad[i];
      bundle.rates.set(mbps, (bundle.rates.get(mbps) ?? 0) + 1);
    }
    return [...bundles.values()];
  }

  // A host with one link, in the room of its only switch: it stands under it.
  #inside(host, sw) {
    return host.kind === "host" && sw.kind === "switch" && host.parent === sw.parent && sw.parent.switches.length === 1 &&
      this.plane.hostLinks[host.index].length === 1;
  }

  #links() {
    const bundles = this.#bundles(), rate = bundle => [...bundle.rates].sort((a, b) => b[1] - a[1])[0][0];
    this.links.selectAll("path").data(bundles).join(enter => {
      const path = enter.append("path").on("click", function () { details(bundleDetails(d3.select(this).datum())); });
      path.append("title");
      return path;
    }).attr("d", linkPath).attr("class", bundle => `link rate-${rateClass(this.plane, rate(bundle))}${bundle.bad ? " bad-link" : ""}`)
      .attr("stroke-width", bundle => Math.min(7, 1 + Math.log2(bundle.n) * 0.5)).select("title").text(bundleText);
  }

  // What is selected and where the keyboard is. The links of what is selected stand out; of what has none drawn, its switches'.
  #mark() {
    const all = this.view.selectAll(".item"), { selected } = this;
    all.classed("selected", item => item === selected).attr("tabindex", item => item === this.current ? 0 : -1);
    const paths = this.links.selectAll("path"), ends = set => bundle => set.includes(bundle.from) || set.includes(bundle.to);
    const touches = [[selected], selected?.parent?.switches ?? []].map(ends).find(test => !paths.filter(test).empty());
    paths.classed("near", bundle => touches?.(bundle) ?? false).classed("far", bundle => touches !== undefined && !touches(bundle));
  }

  #act(item) {
    this.current = item;
    if (item.kind === "block") {
      item.open = !item.open;
      this.draw();
      this.#frame(item.open ? item : item.parent);
      this.focus();
    }
    this.choose(item);
  }

  choose(item) {
    this.selected = item;
    this.current = item;
    this.#mark();
    this.select(item);
  }

  node(item) {
    return this.view.selectAll(".item").filter(other => other === item).node();
  }

  focus() {
    this.node(this.current)?.focus({ preventScroll: true });
  }

  // To what was searched for: unfolded with what is around it in the middle, and selected.
  goTo(item) {
    this.fold.reveal(item);
    this.draw();
    this.#frame(item.parent);
    this.choose(item);
    this.focus();
  }

  // As near as a box and what is in it can be seen whole.
  #frame(box) {
    const { w, h } = this.fold.root, k = Math.max(1, Math.min(0.9 * w / box.w, 0.9 * h / box.h));
    const within = (size, middle) => Math.max(size * (1 - k), Math.min(0, size / 2 - k * middle));
    this.svg.call(this.zoom.transform, d3.zoomIdentity.translate(within(w, box.left + box.w / 2), within(h, box.top + box.h / 2)).scale(k));
  }

  fit() {
    this.svg.call(this.zoom.transform, d3.zoomIdentity);
  }

  by(factor) {
    this.svg.call(this.zoom.scaleBy, factor);
  }

  foldAll() {
    this.fold.reset();
    this.draw();
    this.fit();
  }

  #key(event) {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.ctrlKey || event.altKey || event.metaKey || this.current === null)
      return;
    if (event.key in steps)
      this.#step(...steps[event.key]);
    else if (event.key === "Enter" || event.key === " ")
      this.#act(this.current);
    else if (event.key === "Escape")
      this.#foldAround();
    else if (event.key === "+" || event.key === "-")
      this.by(event.key === "+" ? 1.4 : 1 / 1.4);
    else if (event.key === "0")
      this.fit();
    else
      return;
    event.preventDefault();
  }

  #foldAround() {
    const block = this.current.open ? this.current : this.current.parent;
    if (block === this.fold.root)
      return;
    block.open = false;
    this.current = block;
    this.draw();
    this.#frame(block.parent);
    this.focus();
    this.choose(block);
  }

  // The nearest box in a direction; what is aside counts for more than what is ahead.
  #step(dx, dy) {
    const middle = item => [item.left + item.w / 2, item.top + (item.open ? 10 : item.h / 2)], [x, y] = middle(this.current);
    let best = null, least = Infinity;
    for (const item of this.seen) {
      const [ix, iy] = middle(item), ahead = (ix - x) * dx + (iy - y) * dy, aside = Math.abs((ix - x) * dy) + Math.abs((iy - y) * dx);
      if (item !== this.current && ahead > 1 && ahead + 2.5 * aside < least)
        [best, least] = [item, ahead + 2.5 * aside];
    }
    if (best === null)
      return;
    this.current = best;
    this.#mark();
    this.focus();
    this.#intoView(best);
  }

  #intoView(item) {
    const [x, y] = d3.zoomTransform(this.svg.node()).apply([item.left + item.w / 2, item.top + item.h / 2]), { w, h } = this.fold.root;
    if (x < 0 || y < 0 || x > w || y > h)
      this.svg.call(this.zoom.translateTo, item.left + item.w / 2, item.top + item.h / 2);
  }
}

const rateClass = (plane, mbps) => Math.min(5, plane.rates.indexOf(mbps));

function shortened(text, width) {
  const room = Math.max(3, Math.floor(width / 6.2));
  return text.length <= room ? text : text.slice(0, room - 1) + "…";
}

// From edge to edge where one stands above the other, else from middle to middle; far ways in one line are bent.
function linkPath({ from, to }) {
  const middle = item => [item.left + item.w / 2, item.top + item.h / 2];
  let [[x1, y1], [x2, y2]] = [middle(from), middle(to)];
  if (from.parent.layout === "rows" && from.top + from.h <= to.top)
    [y1, y2] = [from.top + from.h, to.top];
  else if (from.parent.layout === "rows" && to.top + to.h <= from.top)
    [y1, y2] = [from.top, to.top + to.h];
  const dx = x2 - x1, dy = y2 - y1, far = Math.hypot(dx, dy) > 2.2 * Math.max(from.w, from.h, to.w, to.h);
  if (from.parent.layout !== "rows" && far && (Math.abs(dx) < 2 || Math.abs(dy) < 2))
    return `M${x1},${y1}Q${x1 + dx / 2 + dy * 0.12},${y1 + dy / 2 + dx * 0.12} ${x2},${y2}`;
  return `M${x1},${y1}L${x2},${y2}`;
}

const ratesText = bundle => [...bundle.rates].map(([mbps, n]) => `${counted(n, "cable")} of ${gbps(mbps)}`).join(", ");
const bundleText = bundle => `${bundle.from.name} – ${bundle.to.name}: ${ratesText(bundle)}${bundle.bad ? `; ${bundle.bad} down` : ""}`;
const bundleDetails = bundle => ({ head: `${bundle.from.name} – ${bundle.to.name}`,
  rows: [["cables", bundle.n], ["rates", ratesText(bundle)], ["down", bundle.bad]] });
