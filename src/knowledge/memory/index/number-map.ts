/** Numbers by number (each ≥ 0), by open addressing. What was set stays. */
export class NumberMap {
  #keys = new Uint32Array(16);
  #values = new Uint32Array(16);
  count = 0;

  /** -1 where nothing is set. */
  get(key: number): number {
    const at = this.#at(key);
    return this.#keys[at] === 0 ? -1 : (this.#values[at] ?? 0);
  }

  set(key: number, value: number): void {
    const at = this.#at(key);
    if (this.#keys[at] === 0) {
      this.#keys[at] = key + 1;
      this.count++;
    }
    this.#values[at] = value;
    if (this.count * 2 > this.#keys.length) this.#grow();
  }

  get sizeBytes(): number {
    return this.#keys.byteLength * 2;
  }

  #at(key: number): number {
    const mask = this.#keys.length - 1;
    let at = (Math.imul(key, 0x9e3779b1) >>> 7) & mask;
    while (this.#keys[at] !== 0 && this.#keys[at] !== key + 1) at = (at + 1) & mask;
    return at;
  }

  #grow(): void {
    const keys = this.#keys;
    const values = this.#values;
    this.#keys = new Uint32Array(keys.length * 2);
    this.#values = new Uint32Array(keys.length * 2);
    this.count = 0;
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i] ?? 0;
      if (key !== 0) this.set(key - 1, values[i] ?? 0);
    }
  }
}
