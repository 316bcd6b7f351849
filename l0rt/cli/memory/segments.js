// SPDX-License-Identifier: Apache-2.0
// The segments' memory in the order of addresses, as rows of cells: what is allocated, by group, and what is cached.

const ROW = 12, GAP = 3;

class SegmentMap {
  constructor(view) {
    this.view = view;
    this.canvas = $("segments");
    this.cells = document.createElement("canvas");
    this.zoomed = 1;
    this.top = 0; // the first row that is seen
    this.listen();
  }

  reset() {
    this.zoomed = 1;
    this.top = 0;
  }

  /** Find the ranges and what lies in them, in the order of addresses. */
  collect() {
    const { device, moment } = this.view, { by_address: order, born, freed, done } = device;
    this.ranges = device.rangesAt(moment);
    if (!this.found || this.found.length < device.count) this.found = new Uint32Array(device.count);
    let count = 0;
    for (let j = 0; j < order.length; j++) {
      const k = order[j];
      if (born[k] <= moment && moment < done[k]) this.found[count++] = k;
    }
    this.count = count;
    if (!this.ranges.length && count) this.ranges = rangesOf(device, this.found, count); // a history without segments
    this.total = this.ranges.reduce((sum, [, size]) => sum + size, 0);
    this.starts = new Float64Array(this.ranges.length + 1); // bytes before each range
    for (let r = 0; r < this.ranges.length; r++) this.starts[r + 1] = this.starts[r] + this.ranges[r][1];
    this.freed = freed;
  }

  draw() {
    const [pen, width, height] = prepare(this.canvas);
    this.collect();
    pen.clearRect(0, 0, width, height);
    const rows = this.rows = Math.max(1, Math.floor(height / (ROW + GAP)));
    const wide = this.wide = Math.max(1, Math.floor(width));
    if (!this.total) {
      pen.fillStyle = colours.soft;
      pen.font = "12px system-ui, sans-serif";
      pen.fillText("No segment has memory at this moment.", 4, 20);
      this.tell();
      return;
    }
    this.perCell = Math.max(this.total / (wide * rows) / this.zoomed, 1);
    this.allRows = Math.ceil(this.total / this.perCell / wide);
    this.top = Math.min(Math.max(this.top, 0), Math.max(this.allRows - rows, 0));
    this.paintCells(wide, rows);
    pen.imageSmoothingEnabled = false;
    for (let row = 0; row < rows; row++) pen.drawImage(this.cells, 0, row, wide, 1, 0, row * (ROW + GAP), wide, ROW);
    this.outline(pen);
    if (this.allRows > rows) {
      const share = height / this.allRows;
      pen.fillStyle = colours.soft;
      pen.fillRect(width - 4, this.top * share, 4, Math.max(rows * share, 6));
    }
    this.tell();
  }

  /** Fill one pixel a cell: what has most of it wins, as the smaller ones before it are painted over. */
  paintCells(wide, rows) {
    const { device, groups, search } = this.view, { addresses, size } = device, { found, ranges, starts, perCell } = this;
    if (this.cells.width !== wide || this.cells.height !== rows) {
      this.cells.width = wide;
      this.cells.height = rows;
    }
    const pen = this.cells.getContext("2d"), image = pen.createImageData(wide, rows);
    const pixels = new Uint32Array(image.data.buffer), most = new Float32Array(wide * rows);
    const low = this.top * wide, high = low + wide * rows;
    const slots = colours.slots.map((colour) => pixelOf(colour)), dim = colours.slots.map((colour) => pixelOf(colour, 70));
    const cached = pixelOf(colours.cached), pending = pixelOf(colours.pending), mark = pixelOf(colours.mark);
    const edge = pixelOf(colours.panel), start = pixelOf(colours.text);
    pixels.fill(cached, 0, Math.min(Math.max(Math.ceil(this.total / perCell) - low, 0), pixels.length));
    let r = 0;
    for (let j = 0; j < this.count; j++) {
      const k = found[j], address = addresses[k];
      while (r < ranges.length - 1 && address >= ranges[r][0] + ranges[r][1]) r++;
      const offset = starts[r] + Math.max(address - ranges[r][0], 0);
      const from = offset / perCell, to = Math.min(offset + size[k], this.total) / perCell;
      if (to < low) continue;
      if (from >= high) break;
      const isPending = this.freed[k] <= this.view.moment;
      const slot = groups.slots[k];
      const colour = isPending ? pending : !search.isOn ? slots[slot] : search.hits[k] ? mark : dim[slot];
      const first = Math.max(Math.floor(from), low), last = Math.min(Math.ceil(to), high);
      for (let c = first; c < last; c++) {
        const share = Math.min(to, c + 1) - Math.max(from, c) + (search.isOn && search.hits[k] ? 1 : 0);
        if (share > most[c - low] && share > 0.02) {
          most[c - low] = share;
          pixels[c - low] = colour;
        }
      }
      // The end of a block that is wide enough is seen.
      if (to - from >= 4 && last === Math.ceil(to)) pixels[last - 1 - low] = edge;
    }
    // Dark cells tell where a segment begins; not if there are more segments than that shows.
    if (ranges.length < (wide * rows) / 24) {
      for (let s = 0; s < ranges.length; s++) {
        const c = Math.floor(starts[s] / perCell) - low;
        if (c >= 0 && c + 3 < pixels.length) pixels.fill(start, c, c + 3);
      }
    }
    pen.putImageData(image, 0, 0);
  }

  /** Draw a line around the chosen allocation. */
  outline(pen) {
    const { chosen, device } = this.view;
    if (chosen === null || !device.isAlive(chosen, this.view.moment)) return;
    const offset = this.offsetOf(device.addresses[chosen]);
    if (offset === null) return;
    pen.strokeStyle = colours.scrub;
    pen.lineWidth = 2;
    const from = Math.floor(offset / this.perCell), to = Math.max(Math.ceil((offset + device.size[chosen]) / this.perCell), from + 3);
    for (let row = Math.max(Math.floor(from / this.wide), this.top); row <= Math.min(Math.floor((to - 1) / this.wide), this.top + this.rows - 1); row++) {
      const left = Math.max(from - row * this.wide, 0), right = Math.min(to - row * this.wide, this.wide);
      pen.strokeRect(left, (row - this.top) * (ROW + GAP), Math.max(right - left, 1), ROW);
    }
  }

  offsetOf(address) {
    let r = this.ranges.length - 1;
    while (r >= 0 && this.ranges[r][0] > address) r--;
    return r < 0 ? null : this.starts[r] + address - this.ranges[r][0];
  }

  tell() {
    const { device, moment } = this.view;
    const cached = Math.max(device.reserved[moment] - device.allocated[moment] - device.pending[moment], 0);
    const largest = this.ranges.reduce((most, [, size]) => Math.max(most, size), 0);
    $("segments-text").textContent = `${plural(this.ranges.length, "segment")}, ${sizeText(this.total)}; ` +
      `${sizeText(cached)} not allocated; largest ${sizeText(largest)}; a pixel is ${sizeText(Math.round(this.perCell || 0))}`;
  }

  /** The allocation at a place of the canvas, or null; and a text that says what is there. */
  at(event) {
    const box = this.canvas.getBoundingClientRect(), { device } = this.view;
    const row = Math.floor((event.clientY - box.top) / (ROW + GAP)) + this.top, column = Math.floor(event.clientX - box.left);
    const cell = row * this.wide + column, low = cell * this.perCell, high = low + this.perCell;
    if (!this.total || low >= this.total || column < 0 || column >= this.wide) return [null, ""];
    const r = Math.max(lowerBound(this.starts, low + 1) - 1, 0);
    const address = this.ranges[r][0] + low - this.starts[r], end = address + (high - low);
    // The last that begins before the cell's end; among those of the cell the largest.
    let first = 0, last = this.count;
    while (first < last) {
      const middle = (first + last) >>> 1;
      if (device.addresses[this.found[middle]] < end) first = middle + 1;
      else last = middle;
    }
    let best = null, inside = 0;
    for (let j = first - 1; j >= 0 && j > first - 2000; j--) {
      const k = this.found[j];
      if (device.addresses[k] + device.size[k] <= address) {
        if (device.addresses[k] < address) break;
        continue;
      }
      inside++;
      if (best === null || device.size[k] > device.size[best]) best = k;
    }
    const where = `segment ${r + 1} of ${this.ranges.length}, ${sizeText(this.ranges[r][1])}`;
    if (best === null) return [null, `not allocated\n${where}`];
    const more = inside > 1 ? `\n${plural(inside - 1, "more allocation")} in this pixel` : "";
    const state = this.freed[best] <= this.view.moment ? "freed, still in use by a stream\n" : "";
    return [best, `${state}${this.view.allocationText(best)}\n${where}${more}`];
  }

  zoom(factor, event) {
    const row = event ? Math.floor((event.clientY - this.canvas.getBoundingClientRect().top) / (ROW + GAP)) : 0;
    const share = (this.top + row) / Math.max(this.allRows, 1);
    this.zoomed = Math.min(Math.max(this.zoomed * factor, 1), 1 << 16);
    this.top = Math.round(share * this.rows * this.zoomed) - row;
    this.view.later();
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointermove", (event) => tip(this.at(event)[1], event));
    canvas.addEventListener("pointerleave", () => tip(""));
    canvas.addEventListener("click", (event) => this.view.choose(this.at(event)[0]));
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey && this.zoomed === 1 && event.deltaY > 0) return; // the page scrolls
      event.preventDefault();
      if (event.shiftKey) this.scroll(Math.sign(event.deltaY || event.deltaX) * 2);
      else this.zoom(event.deltaY > 0 ? 0.8 : 1.25, event);
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        event.preventDefault();
        this.scroll(event.key === "ArrowDown" ? 2 : -2);
      }
    });
    $("segments-closer").addEventListener("click", () => this.zoom(2, null));
    $("segments-wider").addEventListener("click", () => this.zoom(0.5, null));
  }

  scroll(rows) {
    this.top += rows;
    this.view.later();
  }
}

/** Ranges that a history without segments has: allocations that lie within 2 MiB of each other are in one. */
function rangesOf(device, found, count) {
  const ranges = [];
  for (let j = 0; j < count; j++) {
    const address = device.addresses[found[j]], end = address + device.size[found[j]], last = ranges[ranges.length - 1];
    if (last && address - (last[0] + last[1]) < 2 ** 21) last[1] = Math.max(last[1], end - last[0]);
    else ranges.push([address, end - address]);
  }
  return ranges;
}
