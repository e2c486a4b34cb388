// A list that has elements only for what is in sight. Items may differ in height, and may grow.

const AROUND_PX = 900;
/** How many elements outside of sight a frame makes. */
const FRESH_MAX = 3;

/** Where each item begins, and after the last one where it ends. Pure. */
export function offsetsOf(heights) {
  const offsets = new Float64Array(heights.length + 1);
  for (let at = 0; at < heights.length; at += 1) offsets[at + 1] = offsets[at] + heights[at];
  return offsets;
}

/** The items between two heights, and the space before and after them. Pure. */
export function visibleRange(offsets, top, bottom) {
  const count = offsets.length - 1;
  const first = Math.max(0, Math.min(count, lastAtMost(offsets, Math.max(0, top))));
  let last = first;
  while (last < count && offsets[last] < bottom) last += 1;
  return { first, last, above: offsets[first], below: offsets[count] - offsets[last] };
}

/** The last place whose offset is at most a height, by halving. */
function lastAtMost(offsets, height) {
  let low = 0;
  let high = offsets.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (offsets[middle] <= height) low = middle;
    else high = middle - 1;
  }
  return low;
}

/**
 * `keyOf(item)`, `render(item)` makes an element, `update(element, item)` may change it in place and
 * answers false if the element has to be made anew. `guess(item)` is a height before it is known; with
 * `fixed` it is the height, and nothing is measured.
 */
export class VirtualList {
  keyOf;
  render;
  updateElement;
  guess;
  fixed;
  stick;
  onTop;
  onPin;

  /**
   * @param {{keyOf: (item: any) => string, render: (item: any) => HTMLElement, update?: (element: any, item: any) => boolean,
   *   guess: (item: any) => number, fixed?: boolean, stick?: boolean, role?: string, label?: string, onTop?: () => void}} options
   */
  constructor({ keyOf, render, update, guess, fixed = false, stick = false, role = "list", label, onTop }) {
    Object.assign(this, { keyOf, render, updateElement: update, guess, fixed, stick, onTop });
    /** @type {any[]} */
    this.items = [];
    this.heights = new Map();
    this.shown = new Map();
    this.versions = new Map();
    this.before = document.createElement("div");
    this.after = document.createElement("div");
    this.before.className = this.after.className = "space";
    this.element = document.createElement("div");
    this.element.className = "scroller";
    this.inner = document.createElement("div");
    this.inner.className = "inner";
    this.inner.setAttribute("role", role);
    if (label) this.inner.setAttribute("aria-label", label);
    this.element.tabIndex = 0;
    if (label) this.element.setAttribute("aria-label", label);
    this.element.setAttribute("role", "region");
    this.inner.append(this.before, this.after);
    this.element.append(this.inner);
    this.pinned = stick;
    this.expected = -1;
    this.element.addEventListener("scroll", () => this.onScroll(), { passive: true });
    this.sizes = new ResizeObserver((entries) => this.onResize(entries));
    this.sizes.observe(this.element);
  }

  /** Show other items. `changed` are keys of items that look different. */
  set(items, changed) {
    if (items !== this.items) {
      if (this.offsets && !this.pinned && this.element.scrollTop > 0) this.kept ??= this.findAnchor(this.element.scrollTop);
      this.offsets = null;
    }
    this.items = items;
    if (changed) for (const key of changed) this.versions.set(key, (this.versions.get(key) ?? 0) + 1);
    this.layout(changed);
  }

  /** Bring the end into sight, and stay there. */
  toEnd() {
    this.pinned = true;
    this.layout();
  }

  /** Bring an item into sight. */
  reveal(key, atTop = false) {
    let top = 0;
    for (const item of this.items) {
      const height = this.heightOf(item);
      if (this.keyOf(item) === key) {
        const view = this.element;
        if (atTop || top < view.scrollTop || top + height > view.scrollTop + view.clientHeight) {
          view.scrollTop = atTop ? top : top < view.scrollTop ? top : top + height - view.clientHeight;
        }
        this.layout();
        return this.shown.get(key);
      }
      top += height;
    }
    return undefined;
  }

  heightOf(item) {
    return this.heights.get(this.keyOf(item)) ?? this.guess(item);
  }

  onScroll() {
    const view = this.element;
    if (Math.abs(view.scrollTop - this.expected) > 1) {
      this.pinned = this.stick && view.scrollTop + view.clientHeight >= view.scrollHeight - 40;
      this.onPin?.(this.pinned);
    }
    if (view.scrollTop < 400) this.onTop?.();
    this.layoutSoon();
  }

  onResize(entries) {
    let moved = false;
    for (const { target, borderBoxSize } of entries) {
      if (target === this.element) moved = true;
      else if (target.dataset.key !== undefined && this.note(target.dataset.key, borderBoxSize[0].blockSize)) moved = true;
    }
    if (moved) this.layout();
  }

  /** Note the height of an item. True if places change with it. */
  note(key, height) {
    const place = this.placeOf?.get(key);
    const known = this.heights.get(key);
    if (!height || Math.abs((known ?? -1) - height) <= 0.5) return false;
    this.heights.set(key, height);
    const before = place === undefined || !this.offsets ? -1 : this.offsets[place + 1] - this.offsets[place];
    if (Math.abs(before - height) <= 0.5) return false;
    this.stale = true;
    return true;
  }

  /** Where each item is. What is in sight stays where it is when heights above it change. */
  measure() {
    if (this.offsets && !this.stale) return;
    this.stale = false;
    this.offsets = offsetsOf(this.items.map((item) => this.heightOf(item)));
    if (this.placed === this.items) return;
    this.placed = this.items;
    this.placeOf = new Map(this.items.map((item, place) => [this.keyOf(item), place]));
  }

  /** The first item in sight, and how far it is scrolled out. */
  findAnchor(top) {
    const item = this.items[Math.min(visibleRange(this.offsets, top, top).first, this.items.length - 1)];
    const key = item === undefined ? undefined : this.keyOf(item);
    return { key, past: top - (this.offsets[this.placeOf.get(key)] ?? 0) };
  }

  layout(changed) {
    const view = this.element;
    if (!view.isConnected) return;
    const height = view.clientHeight;
    const at = view.scrollTop;
    let top = at;
    const anchor = this.pinned ? null : this.kept ?? (this.offsets && top > 0 ? this.findAnchor(top) : null);
    this.kept = null;
    this.measure();
    if (anchor && this.placeOf.has(anchor.key)) top = this.offsets[this.placeOf.get(anchor.key)] + anchor.past;
    if (this.pinned) top = Math.max(0, this.offsets.at(-1) - height);
    const fresh = this.place(this.affordable(top, height));
    // To read a place from here on lays the page out: a list that knows its heights never asks.
    if (this.fixed) {
      if (Math.abs(top - at) > 0.5) view.scrollTop = top;
      return;
    }
    for (const key of changed ?? []) if (this.shown.has(key)) fresh.push(this.shown.get(key));
    if (this.noteAll(fresh)) {
      const kept = this.pinned ? null : this.findAnchor(top);
      this.measure();
      if (kept && this.placeOf.has(kept.key)) top = this.offsets[this.placeOf.get(kept.key)] + kept.past;
      this.pad();
    }
    if (this.pinned) view.scrollTop = view.scrollHeight;
    else if (Math.abs(top - view.scrollTop) > 0.5) view.scrollTop = top;
    this.expected = view.scrollTop;
  }

  /** Note the heights of elements: the page is laid out once for all of them. */
  noteAll(elements) {
    let grown = false;
    for (const element of elements) if (this.note(element.dataset.key, element.getBoundingClientRect().height)) grown = true;
    return grown;
  }

  /** The items in sight, and around them as many as a frame can afford: the next frame makes more. */
  affordable(top, height) {
    const { offsets } = this;
    const wanted = visibleRange(offsets, top - AROUND_PX, top + height + AROUND_PX);
    let { first, last } = visibleRange(offsets, top, top + height);
    let rest = FRESH_MAX;
    const costs = (place) => (this.shown.has(this.keyOf(this.items[place])) ? 0 : 1);
    while (last < wanted.last && (rest -= costs(last)) >= 0) last += 1;
    while (first > wanted.first && (rest -= costs(first - 1)) >= 0) first -= 1;
    if (first > wanted.first || last < wanted.last) this.layoutSoon();
    return { first, last };
  }

  layoutSoon() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.layout();
    });
  }

  /** Make, change, move and remove elements. Answers the new ones. */
  place({ first, last }) {
    const wanted = new Map();
    for (let at = first; at < last; at += 1) wanted.set(this.keyOf(this.items[at]), this.items[at]);
    const spare = [];
    for (const [key, element] of this.shown) {
      if (wanted.has(key)) continue;
      // The focus goes to the list instead of nowhere.
      if (element.contains(document.activeElement)) this.element.focus({ preventScroll: true });
      if (this.fixed) spare.push(element);
      else this.drop(element);
    }
    let previous = this.before;
    const ordered = new Map();
    const fresh = [];
    for (const [key, item] of wanted) {
      let element = this.shown.get(key);
      const version = this.versions.get(key) ?? 0;
      if (element && element.version !== version && !(this.updateElement?.(element, item) ?? false)) {
        this.drop(element);
        element = undefined;
      }
      if (!element) {
        element = this.reuse(spare, item) ?? this.render(item);
        element.dataset.key = key;
        if (!this.fixed) this.sizes.observe(element);
        fresh.push(element);
      }
      element.version = version;
      if (previous.nextSibling !== element) previous.after(element);
      previous = element;
      ordered.set(key, element);
    }
    for (const element of spare) this.drop(element);
    this.shown = ordered;
    this.range = { first, last };
    this.pad();
    return fresh;
  }

  /** An element that is not in sight any more, changed into that of another item. */
  reuse(spare, item) {
    if (!spare.length || !this.updateElement?.(spare.at(-1), item)) return undefined;
    return spare.pop();
  }

  drop(element) {
    this.sizes.unobserve(element);
    element.remove();
  }

  /** The space of the items that have no elements. */
  pad() {
    const { first, last } = this.range;
    this.before.style.height = `${this.offsets[first]}px`;
    this.after.style.height = `${this.offsets.at(-1) - this.offsets[last]}px`;
  }
}
