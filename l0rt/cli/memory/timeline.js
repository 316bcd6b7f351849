// SPDX-License-Identifier: Apache-2.0
// The timeline: bytes by group over the entries or the time, what is reserved, failures, and where the reader is.

const LEFT = 78, BOTTOM = 20, TOP = 16;

class Timeline {
  constructor(view) {
    this.view = view;
    this.canvas = $("timeline");
    this.picture = document.createElement("canvas"); // all but the line of the moment
    this.isTime = false;
    this.listen();
  }

  /** Show all of a device. */
  reset() {
    const { device } = this.view;
    this.from = 0;
    this.to = this.isTime ? Math.max(device.timeAt(device.entries), 1) : Math.max(device.entries, 1);
    this.stale = true;
  }

  end() {
    const { device } = this.view;
    return this.isTime ? Math.max(device.timeAt(device.entries), 1) : Math.max(device.entries, 1);
  }

  /** Where a moment is on the axis. */
  axisOf(moment) {
    return this.isTime ? this.view.device.timeAt(moment) : moment;
  }

  /** The moment of a place on the axis. */
  momentOf(value) {
    const { device } = this.view;
    const moment = this.isTime ? lowerBound(device.time, Math.floor(value) + 1) : Math.round(value);
    return Math.min(Math.max(moment, 0), device.entries);
  }

  xOf(moment) {
    return LEFT + ((this.axisOf(moment) - this.from) / (this.to - this.from)) * this.wide;
  }

  valueAt(x) {
    return this.from + ((x - LEFT) / this.wide) * (this.to - this.from);
  }

  zoom(factor, x = null) {
    const middle = x === null ? this.axisOf(this.view.moment) : this.valueAt(x);
    const end = this.end(), least = this.isTime ? end / 1e7 + 1 : 8;
    const span = Math.min(Math.max((this.to - this.from) * factor, least), end);
    const share = x === null ? 0.5 : (x - LEFT) / this.wide;
    this.from = Math.min(Math.max(middle - span * share, 0), Math.max(end - span, 0));
    this.to = this.from + span;
    this.stale = true;
    this.view.later();
  }

  /** Bring a moment into view. */
  reveal(moment) {
    const at = this.axisOf(moment), span = this.to - this.from;
    if (at >= this.from && at <= this.to) return;
    this.from = Math.min(Math.max(at - span / 2, 0), Math.max(this.end() - span, 0));
    this.to = this.from + span;
    this.stale = true;
  }

  draw() {
    const [pen, width, height] = prepare(this.canvas);
    this.wide = Math.max(width - LEFT - 10, 1);
    this.high = Math.max(height - BOTTOM - TOP, 1);
    if (this.stale || this.picture.width !== this.canvas.width || this.picture.height !== this.canvas.height) {
      this.picture.width = this.canvas.width;
      this.picture.height = this.canvas.height;
      this.paint(this.picture.getContext("2d"), width, height);
      this.stale = false;
    }
    pen.save();
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.drawImage(this.picture, 0, 0);
    pen.restore();
    const x = this.xOf(this.view.moment);
    if (x >= LEFT - 1 && x <= LEFT + this.wide + 1) {
      pen.fillStyle = colours.scrub;
      pen.fillRect(x - 0.75, TOP - 6, 1.5, this.high + 6);
      pen.beginPath();
      pen.moveTo(x - 6, TOP - 12);
      pen.lineTo(x + 6, TOP - 12);
      pen.lineTo(x, TOP - 3);
      pen.fill();
    }
  }

  paint(pen, width, height) {
    const { device, groups, search } = this.view, ratio = window.devicePixelRatio || 1;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const top = Math.max(device.highest, 1), yOf = (bytes) => TOP + this.high * (1 - bytes / top);
    this.grid(pen, top, yOf, width);
    const columns = Math.ceil(this.wide), bounds = new Uint32Array(columns + 1);
    for (let c = 0; c <= columns; c++) bounds[c] = this.momentOf(this.valueAt(LEFT + c));
    const { stack, reserved, pending, found } = this.sample(columns, bounds, groups, search);
    const slots = groups.names.map((_, slot) => slot).filter((slot) => groups.names[slot] !== undefined);
    const base = new Float64Array(columns);
    const area = (bytes, colour) => {
      pen.fillStyle = colour;
      pen.beginPath();
      pen.moveTo(LEFT, yOf(base[0]));
      for (let c = 0; c < columns; c++) {
        const y = yOf(base[c] + bytes(c));
        pen.lineTo(LEFT + c, y);
        pen.lineTo(LEFT + c + 1, y);
      }
      for (let c = columns - 1; c >= 0; c--) {
        pen.lineTo(LEFT + c + 1, yOf(base[c]));
        pen.lineTo(LEFT + c, yOf(base[c]));
      }
      pen.fill();
      for (let c = 0; c < columns; c++) base[c] += bytes(c);
    };
    pen.globalAlpha = search.isOn ? 0.35 : 1;
    for (const slot of slots) area((c) => stack[c * SLOTS + slot], colours.slots[slot]);
    area((c) => pending[c], colours.pending);
    pen.globalAlpha = 1;
    const line = (values, colour, thick) => {
      pen.strokeStyle = colour;
      pen.lineWidth = thick;
      pen.beginPath();
      for (let c = 0; c < columns; c++) {
        pen.lineTo(LEFT + c, yOf(values[c]));
        pen.lineTo(LEFT + c + 1, yOf(values[c]));
      }
      pen.stroke();
    };
    line(reserved, colours.reserved, 1.5);
    if (search.isOn) line(found, colours.mark, 2);
    this.marks(pen, bounds);
  }

  /** What each column of pixels shows: the groups at its highest moment, so that no peak is lost. */
  sample(columns, bounds, groups, search) {
    const { device } = this.view, { allocated, size, bornFirst, byFreed, freedFirst } = device, { slots } = groups;
    const stack = new Float64Array(columns * SLOTS), now = new Float64Array(SLOTS);
    const reserved = new Float64Array(columns), pending = new Float64Array(columns), found = new Float64Array(columns);
    let moment = bounds[0];
    device.eachAlive(moment, (k) => { now[slots[k]] += size[k]; });
    for (let c = 0; c < columns; c++) {
      const last = Math.max(bounds[c + 1], bounds[c]);
      let best = -1;
      for (;;) {
        if (allocated[moment] > best) {
          best = allocated[moment];
          stack.set(now, c * SLOTS);
          pending[c] = device.pending[moment];
        }
        if (device.reserved[moment] > reserved[c]) reserved[c] = device.reserved[moment];
        if (search.isOn && search.bytes[moment] > found[c]) found[c] = search.bytes[moment];
        if (moment >= last) break;
        moment++;
        for (let k = bornFirst[moment], end = bornFirst[moment + 1]; k < end; k++) now[slots[k]] += size[k];
        for (let j = freedFirst[moment], end = freedFirst[moment + 1]; j < end; j++) now[slots[byFreed[j]]] -= size[byFreed[j]];
      }
    }
    return { stack, reserved, pending, found };
  }

  grid(pen, top, yOf, width) {
    pen.font = "11px ui-monospace, monospace";
    pen.fillStyle = colours.soft;
    pen.strokeStyle = colours.line;
    pen.lineWidth = 1;
    const unit = 1024 ** Math.max(Math.floor(Math.log(top) / Math.log(1024)), 0);
    const step = roundStep(top / unit / 4) * unit;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (let bytes = 0; bytes <= top; bytes += step) {
      const y = Math.round(yOf(bytes)) + 0.5;
      pen.beginPath();
      pen.moveTo(LEFT, y);
      pen.lineTo(width - 10, y);
      pen.stroke();
      pen.fillText(sizeText(Math.round(bytes)), LEFT - 6, y);
    }
    pen.textBaseline = "alphabetic";
    const tick = Math.max(roundStep((this.to - this.from) / Math.max(2, this.wide / 130)), 1);
    for (let value = Math.ceil(this.from / tick) * tick; value <= this.to; value += tick) {
      const x = LEFT + ((value - this.from) / (this.to - this.from)) * this.wide;
      pen.textAlign = x > LEFT + this.wide - 40 ? "right" : "center";
      pen.fillRect(Math.round(x), TOP + this.high, 1, 4);
      pen.fillText(this.isTime ? timeText(value) : countText(value), x, TOP + this.high + 15);
    }
  }

  /** Annotations as spans above, the peak, and failures as lines. */
  marks(pen, bounds) {
    const { device } = this.view, end = LEFT + this.wide;
    const open = [], spans = [];
    for (const [moment, name, isStart] of device.annotations) {
      if (isStart) open.push([moment, name]);
      else {
        const place = open.findLastIndex(([, other]) => other === name);
        if (place >= 0) spans.push([open.splice(place, 1)[0][0], moment, name]);
      }
    }
    for (const [moment, name] of open) spans.push([moment, device.entries, name]);
    spans.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
    pen.font = "10px ui-monospace, monospace";
    pen.textAlign = "left";
    let free = LEFT;  // where no name of a range around or before is
    for (const [from, to, name] of spans) {
      const x = Math.max(this.xOf(from), LEFT), right = Math.min(this.xOf(to), end);
      if (right <= LEFT || x >= end) continue;
      pen.fillStyle = colours.accent;
      pen.globalAlpha = 0.28;
      pen.fillRect(x, 0, Math.max(right - x - 1.5, 1), TOP - 3);
      pen.globalAlpha = 1;
      const begin = Math.max(x, free);
      if (right - begin <= 24) continue;
      const text = fitted(name, right - begin - 4, 6.1);
      pen.fillStyle = colours.text;
      pen.fillText(text, begin + 3, TOP - 6);
      free = begin + 3 + 6.1 * text.length;
    }
    for (const [place] of device.failures) {
      const x = this.xOf(place + 1);
      if (x < LEFT || x > end) continue;
      pen.fillStyle = colours.mark;
      pen.fillRect(x - 1, TOP, 2, this.high);
      pen.textAlign = x > end - 90 ? "right" : "left";
      pen.fillText("out of memory", x > end - 90 ? x - 4 : x + 4, TOP + 10);
    }
    const x = this.xOf(device.peakMoment);
    if (x < LEFT || x > end || !device.allocated[device.peakMoment]) return;
    const y = TOP + this.high * (1 - device.allocated[device.peakMoment] / Math.max(device.highest, 1));
    pen.strokeStyle = pen.fillStyle = colours.text;
    pen.lineWidth = 1.2;
    pen.beginPath();
    pen.arc(x, y, 3.5, 0, 7);
    pen.stroke();
    const text = `peak ${sizeText(device.allocated[device.peakMoment])}`;
    const isLeft = x > end - 120;
    pen.font = "11px ui-monospace, monospace";
    pen.textAlign = isLeft ? "right" : "left";
    pen.lineWidth = 3;
    pen.strokeStyle = colours.panel;
    const at = [isLeft ? x - 8 : x + 8, Math.max(y - 4, TOP + 9)];
    pen.strokeText(text, ...at);
    pen.fillText(text, ...at);
  }

  listen() {
    const { canvas, view } = this;
    const place = (event) => event.clientX - canvas.getBoundingClientRect().left;
    const go = (event) => view.go(this.momentOf(this.valueAt(place(event))));
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      canvas.setPointerCapture(event.pointerId);
      go(event);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (event.buttons & 1) go(event);
      const moment = this.momentOf(this.valueAt(place(event))), { device } = view;
      tip(`${device.entryText(moment)}\nallocated ${sizeText(device.allocated[moment])}, reserved ${sizeText(device.reserved[moment])}`, event);
    });
    canvas.addEventListener("pointerleave", () => tip(""));
    canvas.addEventListener("dblclick", () => this.showAll());
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan((event.deltaX || event.deltaY) / this.wide);
      else this.zoom(event.deltaY > 0 ? 1.25 : 0.8, place(event));
    }, { passive: false });
  }

  pan(share) {
    const span = this.to - this.from;
    this.from = Math.min(Math.max(this.from + share * span, 0), Math.max(this.end() - span, 0));
    this.to = this.from + span;
    this.stale = true;
    this.view.later();
  }

  showAll() {
    this.reset();
    this.view.later();
  }
}

/** A round number that is at least a value, or just above it. */
function roundStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return ([1, 2, 5].find((k) => k * power >= rough * 0.999) || 10) * power;
}
