// SPDX-License-Identifier: Apache-2.0
// The columns of the page, and what is alive at a moment. A moment is a number of entries: 0 is before the first.

const ALLOC = 0, FREE_REQUESTED = 1, FREE_COMPLETED = 2, OOM = 7, SNAPSHOT = 8;
const TYPES = { u1: Uint8Array, u4: Uint32Array, i4: Int32Array, f8: Float64Array };

/** Unpack the data of an element: JSON, and columns by name. */
async function unpack(number) {
  const text = $(`data-${number}`).textContent;
  let bytes;
  if (Uint8Array.fromBase64) bytes = Uint8Array.fromBase64(text);
  else {
    const raw = atob(text);
    bytes = new Uint8Array(raw.length);
    for (let k = 0; k < raw.length; k++) bytes[k] = raw.charCodeAt(k);
  }
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const length = new Uint32Array(buffer, 0, 1)[0];
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const columns = {};
  for (const [name, [kind, count, offset]] of Object.entries(header.columns)) {
    columns[name] = new TYPES[kind](buffer, 8 + length + offset, count);
  }
  return { header, columns };
}

/** What all devices share: texts, calls, and the tree of calls whose nodes are the stacks. */
class Common {
  constructor({ header, columns }) {
    Object.assign(this, header, columns);
    this.nodes = this.parent.length;
  }

  functionOf(node) {
    return node ? this.texts[this.function[this.call[node]]] : "(no stack)";
  }

  placeOf(node) {
    if (!node) return "";
    const call = this.call[node];
    return `${this.texts[this.file[call]]}:${this.line[call]}`;
  }

  /** The nodes of a stack, innermost call first. */
  path(node) {
    const found = [];
    for (; node; node = this.parent[node]) found.push(node);
    return found;
  }

  /** The children of each node: those of k are kids[first[k]] to before kids[first[k + 1]]. */
  children() {
    if (!this.family) this.family = familyOf(this.parent);
    return this.family;
  }
}

function familyOf(parent) {
  const first = new Uint32Array(parent.length + 1), kids = new Uint32Array(Math.max(parent.length - 1, 0));
  for (let k = 1; k < parent.length; k++) first[parent[k] + 1]++;
  for (let k = 0; k < parent.length; k++) first[k + 1] += first[k];
  const next = first.slice();
  for (let k = 1; k < parent.length; k++) kids[next[parent[k]]++] = k;
  return { first, kids };
}

/** One device: its entries, its allocations in the order of their beginning, its ranges in the order of addresses. */
class Device {
  constructor({ header, columns }) {
    Object.assign(this, header, columns);
    const n = this.entries, count = this.size.length;
    this.count = count;
    this.time = cumulated(this.time, 0, Float64Array);
    this.born = cumulated(this.born, count ? this.first[0] : 0, Uint32Array);
    this.freed = new Uint32Array(count);
    this.done = new Uint32Array(count);
    for (let k = 0; k < count; k++) {
      this.freed[k] = this.born[k] + this.life[k];
      this.done[k] = this.freed[k] + this.wait[k];
    }
    this.allocated = curve(n, this.born, this.freed, this.size);
    this.pending = curve(n, this.freed, this.done, this.size);
    this.reserved = curve(n, this.range_born, this.range_freed, this.range_size);
    this.peakMoment = 0;
    for (let p = 1; p <= n; p++) if (this.allocated[p] > this.allocated[this.peakMoment]) this.peakMoment = p;
    this.highest = 0;
    for (let p = 0; p <= n; p++) this.highest = Math.max(this.highest, this.reserved[p], this.allocated[p]);
    [this.byFreed, this.freedFirst] = ordered(this.freed, n + 2);
    this.bornFirst = firsts(this.born, n + 2);
    this.restPlaces = [];
    for (let i = 0; i < n; i++) if (this.kind[i] > FREE_COMPLETED) this.restPlaces.push(i);
    this.addresses = new Float64Array(count); // rounded to 2048 bytes above 2^53: enough to draw
    for (let k = 0; k < count; k++) this.addresses[k] = this.address_high[k] * 2 ** 32 + this.address_low[k];
  }

  isAlive(k, moment) {
    return this.born[k] <= moment && moment < this.freed[k];
  }

  /** Call a function for each allocation that is alive at a moment, in the order of their beginning. */
  eachAlive(moment, call) {
    const { freed } = this, end = this.bornFirst[moment + 1];
    for (let k = 0; k < end; k++) if (freed[k] > moment) call(k);
  }

  timeAt(moment) {
    return this.entries ? this.time[Math.max(moment - 1, 0)] : 0;
  }

  addressText(k) {
    return hexText(this.address_low[k], this.address_high[k]);
  }

  /** The ranges that have memory at a moment, neighbours as one: [address, size] in the order of addresses. */
  rangesAt(moment) {
    const found = [];
    for (let k = 0; k < this.range_size.length; k++) {
      if (this.range_born[k] > moment || this.range_freed[k] <= moment) continue;
      const address = this.range_address_high[k] * 2 ** 32 + this.range_address_low[k];
      const last = found[found.length - 1];
      if (last && last[0] + last[1] === address) last[1] += this.range_size[k];
      else found.push([address, this.range_size[k]]);
    }
    return found;
  }

  /** What the entry that led to a moment did. */
  entryText(moment) {
    if (!this.entries) return "The snapshot has no history: this is its end.";
    if (!moment) return `Before the first of the ${countText(this.entries)} entries.`;
    const i = moment - 1, ref = this.ref[i];
    const head = `Entry ${countText(moment)} of ${countText(this.entries)}, ${timeText(this.time[i])}: `;
    if (this.kind[i] <= FREE_COMPLETED) {
      const name = ["alloc", "free_requested", "free_completed"][this.kind[i]];
      return `${head}${name} ${sizeText(this.size[ref])} at ${this.addressText(ref)}, stream ${this.streams[this.stream[ref]]}`;
    }
    const name = this.actions[this.rest_text[ref]];
    if (this.kind[i] === OOM) {
      const failure = this.failures.find(([place]) => place === i);
      return `${head}out of memory: requested ${sizeText(failure[1])}, free ${sizeText(failure[2])}`;
    }
    if (this.kind[i] >= SNAPSHOT) return `${head}${name}`;
    return `${head}${name} ${sizeText(this.rest_size[ref])} at ${hexText(this.rest_address_low[ref], this.rest_address_high[ref])}`;
  }
}

/** Values from their distances; values that came whole stay. */
function cumulated(distances, start, Type) {
  if (distances instanceof Float64Array) return distances;
  const found = new Type(distances.length);
  for (let k = 0, sum = start; k < found.length; k++) found[k] = sum += distances[k];
  return found;
}

/** The bytes at each moment from 0 to n of what is there from one moment to before another. */
function curve(n, from, to, sizes) {
  const found = new Float64Array(n + 2);
  for (let k = 0; k < sizes.length; k++) {
    found[from[k]] += sizes[k];
    found[to[k]] -= sizes[k];
  }
  for (let p = 1; p <= n; p++) found[p] += found[p - 1];
  return found.subarray(0, n + 1);
}

/** Where those of each moment begin, of values that are in order. */
function firsts(values, moments) {
  const first = new Uint32Array(moments + 1);
  for (let k = 0; k < values.length; k++) first[values[k] + 1]++;
  for (let p = 0; p < moments; p++) first[p + 1] += first[p];
  return first;
}

/** Numbers in the order of their values, and where each value's begin. */
function ordered(values, moments) {
  const first = firsts(values, moments), next = first.slice(), found = new Uint32Array(values.length);
  for (let k = 0; k < values.length; k++) found[next[values[k]]++] = k;
  return [found, first];
}
