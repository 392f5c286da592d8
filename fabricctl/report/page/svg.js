// svg.js - elements of SVG, and a view that the mouse, the wheel and fingers move and zoom.
"use strict";

// Set attributes; null removes one.
function put(node, attributes) {
  for (const [key, value] of Object.entries(attributes))
    if (value === null)
      node.removeAttribute(key);
    else
      node.setAttribute(key, value);
  return node;
}

function svgElement(name, attributes = {}, content = []) {
  const node = put(document.createElementNS("http://www.w3.org/2000/svg", name), attributes);
  node.append(...content);
  return node;
}

// Give a parent one child of this name for each item, in order, and return these children. make() fills a new one.
function oneEach(parent, name, items, make = () => {}) {
  const nodes = [...parent.children].filter(node => node.localName === name);
  nodes.splice(items.length).forEach(node => node.remove());
  return items.map((item, i) => {
    const node = nodes[i] ?? parent.appendChild(svgElement(name));
    node.item = item;
    if (nodes[i] === undefined)
      make(node);
    return node;
  });
}

// A point of the drawing, times k, plus x and y, is a point of the view.
class Zoom {
  // place(event): a point of the view; middle(): its middle; least, most: bounds of k; within(transform): the nearest one
  // that is allowed; fingers: the number that moves the view, fewer move the page; moved(): draw.
  constructor(node, options) {
    Object.assign(this, { node, x: 0, y: 0, k: 1, within: transform => transform }, options);
    node.addEventListener("wheel", event => this.#wheel(event), { passive: false });
    node.addEventListener("mousedown", event => this.#press(event));
    for (const kind of ["touchstart", "touchmove", "touchend", "touchcancel"])
      node.addEventListener(kind, event => this.#touch(event), { passive: false });
  }

  apply([x, y]) {
    return [x * this.k + this.x, y * this.k + this.y];
  }

  invert([x, y]) {
    return [(x - this.x) / this.k, (y - this.y) / this.k];
  }

  set({ x, y, k }) {
    Object.assign(this, { x, y, k });
    this.moved();
  }

  // Show a point of the drawing at a point of the view.
  #show([x, y], [vx, vy], k = this.k) {
    const bounded = Math.max(this.least, Math.min(this.most, k));
    this.set(this.within({ x: vx - x * bounded, y: vy - y * bounded, k: bounded }));
  }

  by(factor, at = this.middle()) {
    this.#show(this.invert(at), at, this.k * factor);
  }

  centre(point) {
    this.#show(point, this.middle());
  }

  // Without Ctrl the wheel moves the page.
  #wheel(event) {
    if (!event.ctrlKey)
      return;
    event.preventDefault();
    this.by(2 ** (-event.deltaY * [0.02, 0.5, 10][event.deltaMode]), this.place(event));
  }

  // Drag until the button is released. The click after a drag is not for the box below.
  #press(event) {
    if (event.button !== 0 || event.ctrlKey)
      return;
    const point = this.invert(this.place(event)), { clientX, clientY } = event, dragged = new AbortController(), { signal } = dragged;
    let far = false;
    addEventListener("selectstart", move => move.preventDefault(), { signal });
    addEventListener("mousemove", move => {
      far ||= Math.hypot(move.clientX - clientX, move.clientY - clientY) > 3;
      if (far)
        this.#show(point, this.place(move));
    }, { signal });
    addEventListener("mouseup", () => {
      dragged.abort();
      if (!far)
        return;
      const click = new AbortController();
      addEventListener("click", clicked => clicked.stopPropagation(), { capture: true, signal: click.signal });
      setTimeout(() => click.abort());
    }, { signal });
  }

  // Keep the points under two fingers under them; one finger moves.
  #touch(event) {
    const places = [...event.touches].filter(({ target }) => this.node.contains(target)).slice(0, 2).map(finger => this.place(finger));
    if (places.length < this.fingers) {
      this.held = null;
      return;
    }
    const middle = [0, 1].map(axis => places.reduce((sum, place) => sum + place[axis], 0) / places.length);
    const apart = places.length === 2 ? Math.hypot(places[0][0] - places[1][0], places[0][1] - places[1][1]) : 1;
    if (event.type === "touchmove" && this.held?.n === places.length) {
      event.preventDefault();
      this.#show(this.held.point, middle, this.held.k * apart / this.held.apart);
    } else
      this.held = places.length === 0 ? null : { n: places.length, point: this.invert(middle), k: this.k, apart: apart || 1 };
  }
}
