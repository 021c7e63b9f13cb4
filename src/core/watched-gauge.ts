import { Gauge, type Registry } from "prom-client";

type Reading = number | undefined | Promise<number | undefined>;

/**
 * A gauge whose values are asked for when metrics are read. What tells nothing (undefined) has no sample, nor has a
 * gauge that nobody has told what to watch: a process shows only what it has.
 */
export class WatchedGauge<Label extends string = never> {
  readonly #sources: { labels: Record<Label, string>; read: () => Reading }[] = [];

  constructor(options: { name: string; help: string; labelNames?: readonly Label[]; registers: Registry[] }) {
    const sources = this.#sources;
    const gauge: Gauge<Label> = new Gauge<Label>({
      ...options,
      labelNames: options.labelNames ?? [],
      collect: async (): Promise<void> => {
        gauge.reset();
        // Without labels a reset leaves a 0 behind.
        gauge.remove({});
        for (const { labels, read } of sources) {
          const value = await read();
          if (value !== undefined) gauge.set(labels, value);
        }
      },
    });
  }

  /** Of several that watch the same labels the last one counts. */
  watch(labels: Record<Label, string>, read: () => Reading): void {
    this.#sources.push({ labels, read });
  }
}
