// draw.js - the drawing of a fabric: boxes and links, with the mouse and with the keyboard.
"use strict";

class Drawing {
  constructor(select) {
    this.svg = document.getElementById("drawing");
    this.select = select;
    this.view = this.svg.appendChild(svgElement("g"));
    for (const layer of ["rooms", "links", "boxes", "marks"])
      this[layer] = this.view.appendChild(svgElement("g"));
    this.zoom = new Zoom(this.svg, { least: 0.5, most: 60, fingers: 2, moved: () => this.#moved(),
      middle: () => [this.fold.root.w / 2, this.fold.root.h / 2],
      place: ({ clientX, clientY }) => {
        const { x, y } = new DOMPoint(clientX, clientY).matrixTransform(this.svg.getScreenCTM().inverse());
        return [x, y];
      } });
    this.svg.addEventListener("keydown", event => this.#key(event));
    addEventListener("resize", () => this.#resized());
    addEventListener("beforeprint", () => this.view.removeAttribute("transform"));
    addEventListener("afterprint", () => this.#moved());
  }

  show(plane) {
    this.plane = plane;
    this.fold = new Fold(plane);
    this.current = this.selected = null;
    this.draw();
    this.fit();
  }

  draw() {
    this.narrow = isNarrow();
    this.seen = layOut(this.fold.root).slice(1);
    if (!this.seen.includes(this.current))
      this.current = this.seen[0] ?? null;
    this.bundles = this.#bundles();
    this.#size();
    this.#boxes(this.rooms, this.seen.filter(item => item.open));
    this.#links();
    this.#boxes(this.boxes, this.seen.filter(item => !item.open));
    this.#marks();
    this.#mark();
  }

  #moved() {
    const { x, y, k } = this.zoom;
    this.view.setAttribute("transform", `translate(${x},${y}) scale(${k})`);
  }

  // The size changes when a phone is turned.
  #resized() {
    if (this.narrow === isNarrow())
      return this.#size();
    this.draw();
    this.fit();
  }

  // Make the drawing as high as its full width needs.
  #size() {
    const { w, h } = this.fold.root, room = this.svg.clientWidth * h / w;
    this.svg.setAttribute("viewBox", `0 0 ${w} ${h}`);
    this.svg.style.height = `${Math.max(innerHeight * 0.3, Math.min(room, innerHeight * 0.75))}px`;
  }

  #boxes(layer, items) {
    for (const g of oneEach(layer, "g", items, made => {
      made.append(svgElement("title"), svgElement("rect", { rx: 5 }));
      made.addEventListener("click", () => this.#act(made.item));
    }))
      this.#box(g, g.item);
  }

  #box(g, item) {
    const down = this.#down(item), block = item.kind === "block", lines = block && !item.open ? boxLines(item) : [block ? `▾ ${item.name}` : item.label];
    put(g, { class: `item ${item.kind}${item.open ? " open" : ""}${down && !item.open ? " down" : ""} ${HEALTH[this.#health(item)]}`, role: "button",
      "aria-expanded": block ? item.open : null, "aria-label": this.describe(item), transform: `translate(${item.left},${item.top})` });
    g.children[0].textContent = this.describe(item);
    put(g.children[1], { width: item.w, height: item.h });
    if (block && !item.open && badLine(item) !== "")
      lines.push(badLine(item));
    this.#devices(g, item);
    const middle = !item.open, first = item.open ? 15 : lines.length > 1 ? 15 : item.feet > 1 ? item.h / 2 + 1 : item.h / 2 + 4;
    oneEach(g, "text", lines).forEach((text, i) => {
      text.textContent = i === 0 ? shortened(text.item, item.w - 8) : text.item;
      put(text, { class: i === 0 ? null : i === 1 ? "small" : "alarm", x: middle ? item.w / 2 : 10, "text-anchor": middle ? "middle" : "start", y: first + 14 * i });
    });
  }

  // Draw a foot for each device of a host with several, so that a device that is down is visible from afar.
  #devices(g, item) {
    const all = item.kind === "host" ? this.plane.hostDevices[item.index] : [], w = (item.w - 6) / all.length;
    oneEach(g, "line", all.length > 1 ? all : []).forEach((line, i) => put(line, { x1: 3 + w * i + w / 8, x2: 3 + w * (i + 1) - w / 8, y1: item.h - 4, y2: item.h - 4,
      class: `device ${this.plane.deviceBad(line.item) ? "bad-device" : HEALTH[this.plane.deviceHealth(line.item)]}` }));
  }

  // Return the health of a host from its devices and cables; for a folded item, also from its gravest finding.
  #health(item) {
    const found = item.open ? [] : item.findings.map(({ severity }) => severity), { plane } = this;
    if (item.kind === "host")
      found.push(plane.hostBad[item.index] > 0 ? ERROR : WELL, ...plane.hostLinks[item.index].map(i => plane.linkHealth[i]));
    else if (!item.open && this.#down(item))
      found.push(ERROR);
    return Math.max(WELL, ...found);
  }

  #down(item) {
    return item.kind === "block" ? item.n.down > 0 && item.n.down === item.n.switches + item.n.hosts
      : item.kind === "switch" ? this.plane.switches.missing[item.index] === 1 : this.plane.hostDown(item.index);
  }

  // Return the fault of a switch or host; "": none.
  state({ kind, index }) {
    const { plane } = this;
    if (kind === "switch")
      return plane.isLost(kind, index) ? "lost" : plane.away.has(index) ? "in another plane" : plane.switches.missing[index] === 1 ? "missing" : "";
    const bad = plane.hostBad[index], all = plane.hostDevices[index].length;
    return plane.isLost(kind, index) ? "lost" : bad === 0 ? "" : bad === all ? "down" : `${bad} of ${all} devices down`;
  }

  describe(item) {
    if (item.kind !== "block")
      return [`${item.kind} ${item.name}`, this.state(item), item.findings.length > 0 ? counted(item.findings.length, "finding") : ""].filter(Boolean).join(", ");
    return `${item.name}, ${item.open ? "unfolded" : "folded"}: ` + [counted(item.n.switches, "switch"), counted(item.n.hosts, "host"), badLine(item),
      item.findings.length > 0 ? counted(item.findings.length, "finding") : ""].filter(Boolean).join(", ");
  }

  // Draw one line for all cables between the same two boxes. A finding belongs to the line of its cable, and is marked
  // there between switches; else at the host, or at the box that contains it.
  #bundles() {
    const { links, linkBad, linkHealth, nLinks, hostOf } = this.plane, seen = this.fold.representatives(), bundles = new Map(), lineOf = new Map();
    const number = new Map(this.seen.map((item, i) => [item, i]));
    const boxOf = end => end === null ? undefined : end >= 0 ? seen.switch[end] : seen.host[hostOf[-1 - end]];
    for (let i = 0; i < nLinks; i++) {
      const a = boxOf(links.a[i]), b = boxOf(links.b[i]);
      if (a === b || !a || !b || this.#inside(a, b) || this.#inside(b, a))
        continue;
      const [from, to] = number.get(a) < number.get(b) ? [a, b] : [b, a], key = number.get(from) * this.seen.length + number.get(to);
      if (!bundles.has(key))
        bundles.set(key, { from, to, links: [], bad: 0, mbps: 0, health: WELL, rates: new Map(), findings: [] });
      const bundle = bundles.get(key), mbps = links.mbps[i];
      bundle.links.push(i);
      bundle.bad += linkBad[i];
      bundle.mbps += mbps;
      bundle.health = Math.max(bundle.health, linkHealth[i]);
      bundle.rates.set(mbps, (bundle.rates.get(mbps) ?? 0) + 1);
      lineOf.set(i, bundle);
    }
    this.seen.forEach(item => { item.findings = []; });
    for (const found of this.plane.findings) {
      const box = seen[found.kind][found.index];
      lineOf.get(found.link)?.findings.push(found);
      if (!lineOf.has(found.link) || found.kind === "host")
        box.findings.push(found);
      for (let room = box.parent; room.parent !== null; room = room.parent)
        room.findings.push(found);
    }
    return [...bundles.values()].sort((a, b) => a.health - b.health); // faulty lines lie above the others
  }

  // Return whether the host has one link and stands in the same block as its only switch: it is drawn below the
  // switch.
  #inside(host, sw) {
    return host.kind === "host" && sw.kind === "switch" && host.parent === sw.parent && sw.parent.switches.length === 1 &&
      this.plane.hostLinks[host.index].length === 1;
  }

  #links() {
    const { bundles } = this, most = Math.max(1, ...bundles.map(bundle => bundle.mbps));
    const widest = bundles.length > 300 ? 1.5 : bundles.length > 100 ? 3 : 4;
    this.links.classList.toggle("many", bundles.length > 300);
    for (const path of oneEach(this.links, "path", bundles, made => {
      made.append(svgElement("title"));
      made.addEventListener("click", () => this.chooseLine(made.item));
    })) {
      const bundle = path.item, gone = bundle.bad === bundle.links.length;
      put(path, { d: linkPath(bundle), class: `link ${HEALTH[bundle.health]}${gone ? " bad-link" : ""}`, "stroke-width": gone ? 1.6 : 0.7 + widest * bundle.mbps / most });
      path.firstChild.textContent = bundleText(bundle);
    }
  }

  // Mark lines, boxes and folded blocks with their number of findings: a click leads to these.
  #marks() {
    const found = [...this.bundles.filter(({ from, to }) => from.kind !== "host" && to.kind !== "host"), ...this.seen.filter(item => !item.open)].filter(({ findings }) => findings.length > 0);
    for (const g of oneEach(this.marks, "g", found, made => {
      made.append(svgElement("circle"), svgElement("text", { "text-anchor": "middle", y: 4 }));
      made.addEventListener("click", () => this.#choose(made.item));
    })) {
      const thing = g.item, { findings } = thing, text = findings.length > 1 ? `${findings.length}` : "!";
      put(g, { class: `mark ${HEALTH[Math.max(...findings.map(({ severity }) => severity))]}`,
        transform: `translate(${thing.kind ? [thing.left + thing.w - 2, thing.top + 2] : lineMiddle(thing)})` });
      put(g.firstChild, { r: 5 + 3 * text.length });
      g.lastChild.textContent = text;
    }
  }

  #choose(thing) {
    if (thing.kind)
      this.choose(thing);
    else
      this.chooseLine(thing);
  }

  // Highlight the selected item, the keyboard's position, and the selected item's links; if it has none drawn, those
  // of its switches.
  #mark() {
    const { selected } = this, paths = [...this.links.children];
    for (const node of this.#items()) {
      node.classList.toggle("selected", node.item === selected);
      put(node, { tabindex: node.item === this.current ? 0 : -1 });
    }
    const ends = set => bundle => set.includes(bundle.from) || set.includes(bundle.to);
    const touches = selected?.links ? bundle => bundle === selected : [[selected], selected?.parent?.switches ?? []].map(ends).find(test => paths.some(path => test(path.item)));
    for (const path of paths) {
      path.classList.toggle("selected", path.item === selected);
      path.classList.toggle("near", touches?.(path.item) ?? false);
      path.classList.toggle("far", touches !== undefined && !touches(path.item));
    }
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

  chooseLine(bundle) {
    this.selected = bundle;
    this.#mark();
    lineDetails(bundle);
  }

  // Go to a finding: to the line of its cable, or to its box.
  goToFinding({ kind, index, link }) {
    const { items } = this.fold, { links, hostOf } = this.plane;
    if (link === undefined)
      return this.goTo(items[kind][index]);
    const boxes = [links.a[link], links.b[link]].filter(end => end !== null).map(end => end >= 0 ? items.switch[end] : items.host[hostOf[-1 - end]]);
    boxes.forEach(item => this.fold.reveal(item));
    this.draw();
    const bundle = this.bundles.find(({ links: its }) => its.includes(link));
    if (bundle === undefined)
      return this.goTo(items[kind][index]);
    this.#frame(around(boxes));
    this.current = boxes[0];
    this.chooseLine(bundle);
    this.focus();
  }

  #items() {
    return [...this.view.querySelectorAll(".item")];
  }

  node(item) {
    return this.#items().find(node => node.item === item);
  }

  focus() {
    this.node(this.current)?.focus({ preventScroll: true });
  }

  // Go to an item of the search: unfold it, center its surroundings, and select it.
  goTo(item) {
    this.fold.reveal(item);
    this.draw();
    this.#frame(item.parent);
    this.choose(item);
    this.focus();
  }

  // Zoom in as far as a box and its contents stay visible.
  #frame(box) {
    const { w, h } = this.fold.root, k = Math.max(1, Math.min(0.9 * w / box.w, 0.9 * h / box.h));
    const within = (size, middle) => Math.max(size * (1 - k), Math.min(0, size / 2 - k * middle));
    this.zoom.set({ x: within(w, box.left + box.w / 2), y: within(h, box.top + box.h / 2), k });
  }

  fit() {
    this.zoom.set({ x: 0, y: 0, k: 1 });
  }

  by(factor) {
    this.zoom.by(factor);
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

  // Return the nearest box in a direction; sideways distance counts more than distance ahead.
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
    const middle = [item.left + item.w / 2, item.top + item.h / 2], [x, y] = this.zoom.apply(middle), { w, h } = this.fold.root;
    if (x < 0 || y < 0 || x > w || y > h)
      this.zoom.centre(middle);
  }
}

const badLine = ({ n }) => [n.down ? `${n.down} down` : "", n.partly ? `${n.partly} in part` : ""].filter(Boolean).join(", ");

// Return the area that contains all of these boxes.
function around(items) {
  const left = Math.min(...items.map(item => item.left)), top = Math.min(...items.map(item => item.top));
  return { left, top, w: Math.max(...items.map(item => item.left + item.w)) - left, h: Math.max(...items.map(item => item.top + item.h)) - top };
}

function shortened(text, width) {
  const room = Math.max(3, Math.floor(width / 6.2));
  return text.length <= room ? text : text.slice(0, room - 1) + "…";
}

// Return a point of the line away from the middle, where all lines of a ring meet.
function lineMiddle({ from, to }) {
  const part = from.parent.layout === "ring" ? 0.3 : 0.5, [[x1, y1], [x2, y2]] = lineEnds(from, to);
  return [x1 + (x2 - x1) * part, y1 + (y2 - y1) * part];
}

// Return the ends of a line: at the edges if one box stands above the other, else in the middles.
function lineEnds(from, to) {
  const middle = item => [item.left + item.w / 2, item.top + item.h / 2], [[x1, y1], [x2, y2]] = [middle(from), middle(to)];
  if (from.parent.layout === "rows" && from.top + from.h <= to.top)
    return [[x1, from.top + from.h], [x2, to.top]];
  if (from.parent.layout === "rows" && to.top + to.h <= from.top)
    return [[x1, from.top], [x2, to.top + to.h]];
  return [[x1, y1], [x2, y2]];
}

// Return the path of a link: long ones in one line are bent.
function linkPath({ from, to }) {
  const [[x1, y1], [x2, y2]] = lineEnds(from, to);
  const dx = x2 - x1, dy = y2 - y1, far = Math.hypot(dx, dy) > 2.2 * Math.max(from.w, from.h, to.w, to.h);
  if (from.parent.layout !== "rows" && far && (Math.abs(dx) < 2 || Math.abs(dy) < 2))
    return `M${x1},${y1}Q${x1 + dx / 2 + dy * 0.12},${y1 + dy / 2 + dx * 0.12} ${x2},${y2}`;
  return `M${x1},${y1}L${x2},${y2}`;
}

const ratesText = bundle => [...bundle.rates].map(([mbps, n]) => `${counted(n, "cable")} of ${gbps(mbps)}`).join(", ");
const bundleText = bundle => `${bundle.from.name} – ${bundle.to.name}: ${ratesText(bundle)}${bundle.bad ? `; ${bundle.bad} down` : ""}`;
