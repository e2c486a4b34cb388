// A list that has elements only for what is in sight. Items may differ in height, and may grow.

const AROUND_PX = 900;

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
 * answers false if the element has to be made anew. `guess(item)` is a height before it is known.
 */
export class VirtualList {
  constructor({ keyOf, render, update, guess, stick = false, role = "list", label, onTop }) {
    Object.assign(this, { keyOf, render, updateElement: update, guess, stick, onTop });
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
    if (items !== this.items) this.offsets = null;
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
    if (!this.frame) this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.layout();
    });
  }

  onResize(entries) {
    let moved = false;
    for (const { target, borderBoxSize } of entries) {
      const key = target.dataset?.key;
      if (target === this.element) moved = true;
      else if (key !== undefined) {
        const height = borderBoxSize[0].blockSize;
        const before = this.heights.get(key);
        if (!height || Math.abs((before ?? -1) - height) <= 0.5) continue;
        this.heights.set(key, height);
        if (before === undefined && Math.abs(target.guessed - height) <= 0.5) continue;
        this.offsets = null;
        moved = true;
      }
    }
    if (moved) this.layout();
  }

  layout(changed) {
    const view = this.element;
    if (!view.isConnected) return;
    const anchor = this.pinned ? null : this.findAnchor();
    this.offsets ??= offsetsOf(this.items.map((item) => this.heightOf(item)));
    const height = view.clientHeight;
    let top = view.scrollTop;
    if (this.pinned) top = Math.max(0, this.offsets.at(-1) - height);
    const range = visibleRange(this.offsets, top - AROUND_PX, top + height + AROUND_PX);
    this.place(range, changed);
    if (this.pinned) view.scrollTop = view.scrollHeight;
    else if (anchor) {
      const shift = anchor.element.isConnected ? anchor.element.getBoundingClientRect().top - anchor.top : 0;
      if (Math.abs(shift) > 0.5) view.scrollTop += shift;
    }
    this.expected = view.scrollTop;
  }

  /** The first element in sight: it must not move when others change. */
  findAnchor() {
    const edge = this.element.getBoundingClientRect().top;
    for (const element of this.shown.values()) {
      const box = element.getBoundingClientRect();
      if (box.bottom > edge) return { element, top: box.top };
    }
    return null;
  }

  place({ first, last, above, below }, changed) {
    const wanted = new Map();
    for (let at = first; at < last; at += 1) wanted.set(this.keyOf(this.items[at]), this.items[at]);
    for (const [key, element] of this.shown) {
      if (wanted.has(key)) continue;
      // A field that somebody types into stays.
      if (element.contains(document.activeElement) && element !== document.activeElement) this.inner.focus();
      this.sizes.unobserve(element);
      element.remove();
      this.shown.delete(key);
    }
    let previous = this.before;
    const ordered = new Map();
    for (const [key, item] of wanted) {
      let element = this.shown.get(key);
      const version = this.versions.get(key) ?? 0;
      if (element && element.version !== version && !(this.updateElement?.(element, item) ?? false)) {
        this.sizes.unobserve(element);
        element.remove();
        element = undefined;
      }
      if (!element) {
        element = this.render(item);
        element.dataset.key = key;
        element.guessed = this.heightOf(item);
        this.sizes.observe(element);
      }
      element.version = version;
      if (previous.nextSibling !== element) previous.after(element);
      previous = element;
      ordered.set(key, element);
    }
    this.shown = ordered;
    this.before.style.height = `${above}px`;
    this.after.style.height = `${below}px`;
  }
}
