// SPDX-License-Identifier: Apache-2.0
// The flame graph of live bytes: outer calls above inner ones, each as wide as what its stacks have allocated.

const STEP = 18, LETTER = 6.65;

/** A tree of calls that one can be shown of: by stack, or with the tags as its first row. */
class Tree {
  constructor(common, device, byTag) {
    this.common = common;
    this.device = device;
    this.nodes = common.nodes;
    if (!byTag) {
      this.parent = common.parent;
      this.node = null; // its nodes are the common ones
      this.leaf = device.node;
      this.family = common.children();
      return;
    }
    // Node 0 is the root, then one for each tag; below it what its allocations' stacks have.
    const parent = [0], node = [0], tag = [-1], known = new Map();
    for (let t = 0; t < device.tags.length; t++) {
      parent.push(0);
      node.push(0);
      tag.push(t);
    }
    const place = (t, at) => {
      if (!at) return t + 1;
      const key = t * common.nodes + at;
      let found = known.get(key);
      if (found === undefined) {
        const above = place(t, common.parent[at]);
        found = parent.length;
        known.set(key, found);
        parent.push(above);
        node.push(at);
        tag.push(t);
      }
      return found;
    };
    this.leaf = new Uint32Array(device.count);
    for (let k = 0; k < device.count; k++) this.leaf[k] = place(device.tag[k], device.node[k]);
    this.parent = Uint32Array.from(parent);
    this.node = Uint32Array.from(node);
    this.tag = tag;
    this.nodes = parent.length;
    this.family = familyOf(this.parent);
  }

  commonNode(place) {
    return this.node ? this.node[place] : place;
  }

  name(place) {
    if (!place) return "all";
    if (this.node && !this.node[place]) return this.device.tags[this.tag[place]];
    return this.common.functionOf(this.commonNode(place));
  }

  where(place) {
    return this.common.placeOf(this.commonNode(place));
  }

  isHit(place, search) {
    if (this.node && place && !this.node[place]) return search.tags[this.tag[place]];
    return search.own[this.commonNode(place)] === 1;
  }
}

class Flame {
  constructor(view) {
    this.view = view;
    this.canvas = $("flame");
    this.root = 0;
    this.listen();
  }

  reset() {
    this.tree = new Tree(this.view.common, this.view.device, $("grouping").value === "tag");
    this.bytes = new Float64Array(this.tree.nodes);
    this.counts = new Uint32Array(this.tree.nodes);
    this.root = 0;
    // So high that the deepest stack fits: the page does not jump while the reader moves.
    const depths = new Uint16Array(this.tree.nodes);
    this.depth = 0;
    for (let n = 1; n < depths.length; n++) {
      depths[n] = depths[this.tree.parent[n]] + 1;
      if (depths[n] > this.depth) this.depth = depths[n];
    }
  }

  add() {
    const { bytes, counts, tree } = this, { device, moment } = this.view, { leaf, parent } = tree, { size } = device;
    bytes.fill(0);
    counts.fill(0);
    device.eachAlive(moment, (k) => {
      bytes[leaf[k]] += size[k];
      counts[leaf[k]]++;
    });
    for (let n = tree.nodes - 1; n > 0; n--) {
      if (!counts[n]) continue;
      bytes[parent[n]] += bytes[n];
      counts[parent[n]] += counts[n];
    }
  }

  draw() {
    this.add();
    this.canvas.style.height = `${Math.min(Math.max(this.depth + 1, 6), 40) * STEP}px`;
    const [pen, width, height] = prepare(this.canvas);
    pen.clearRect(0, 0, width, height);
    pen.font = "11px ui-monospace, monospace";
    pen.textBaseline = "middle";
    pen.textAlign = "left";
    this.boxes = [];
    const { tree, bytes, view } = this, { family } = tree, { search } = view;
    if (!bytes[this.root]) this.root = 0;
    $("flame-text").textContent = `${sizeText(bytes[this.root])} in ${plural(this.counts[this.root], "allocation")}` +
      (this.root ? `, below ${tree.name(this.root)}` : "");
    if (!bytes[this.root]) return;
    const above = [];
    for (let n = this.root; n; n = tree.parent[n]) above.unshift(tree.parent[n]);
    const scale = width / bytes[this.root];
    above.forEach((n, depth) => this.box(pen, n, 0, width, depth, true));
    // Depth first with a stack of its own: a tree may be deep.
    const todo = [[this.root, 0, above.length]];
    const deepest = Math.ceil(height / STEP);
    while (todo.length) {
      const [n, x, depth] = todo.pop();
      const wide = bytes[n] * scale;
      this.box(pen, n, x, wide, depth, false);
      if (depth + 1 >= deepest) continue;
      let at = x;
      for (let j = family.first[n], end = family.first[n + 1]; j < end; j++) {
        const kid = family.kids[j], part = bytes[kid] * scale;
        if (part >= 0.6) todo.push([kid, at, depth + 1]);
        at += part;
      }
    }
  }

  box(pen, n, x, wide, depth, isAbove) {
    const { tree, view } = this, y = depth * STEP, { search } = view;
    this.boxes.push([x, y, wide, n]);
    pen.globalAlpha = isAbove ? 0.5 : 1;
    pen.fillStyle = this.colour(n);
    if (search.isOn) {
      if (n && tree.isHit(n, search)) pen.fillStyle = colours.mark;
      else pen.globalAlpha *= 0.35;
    }
    pen.fillRect(x, y, Math.max(wide - 0.6, 0.4), STEP - 1);
    pen.globalAlpha = 1;
    if (wide > 30) {
      pen.fillStyle = colours.isDark ? "#f4f6f8" : "#14181d";
      const name = tree.name(n);
      const text = fitted(wide > 180 ? `${name}  ${sizeText(this.bytes[n])}` : name, wide - 8, LETTER);
      if (text) pen.fillText(text, x + 4, y + STEP / 2);
    }
  }

  /** A colour that stays with a function's file; warm, and calm enough to read on. */
  colour(n) {
    if (!n) return colours.cached;
    const { tree } = this, common = tree.commonNode(n);
    if (!common) return n && tree.node ? colours.line : colours.cached;
    const call = tree.common.call[common];
    const hue = (tree.common.file[call] * 67 + 200) % 360, tone = (tree.common.function[call] * 37) % 12;
    return colours.isDark ? `hsl(${hue} 32% ${28 + tone}%)` : `hsl(${hue} 50% ${76 + tone}%)`;
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    return this.boxes?.find(([left, top, wide]) => x >= left && x < left + Math.max(wide, 1) && y >= top && y < top + STEP)?.[3];
  }

  textOf(n) {
    const share = ((100 * this.bytes[n]) / Math.max(this.bytes[0], 1)).toFixed(1);
    const where = this.tree.where(n);
    return `${this.tree.name(n)}${where ? `\n${where}` : ""}\n${sizeText(this.bytes[n])} in ${plural(this.counts[n], "allocation")}, ${share} %`;
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointermove", (event) => {
      const n = this.at(event);
      tip(n === undefined ? "" : this.textOf(n), event);
    });
    canvas.addEventListener("pointerleave", () => tip(""));
    canvas.addEventListener("click", (event) => {
      const n = this.at(event);
      if (n === undefined) return;
      this.root = n;
      this.view.later();
    });
    $("flame-all").addEventListener("click", () => {
      this.root = 0;
      this.view.later();
    });
    $("grouping").addEventListener("change", () => {
      this.reset();
      this.view.later();
    });
  }
}
