/** Metrics of a server at one moment, as Prometheus reads them. */
export type Scrape = readonly Sample[];

type Sample = { name: string; labels: Readonly<Record<string, string>>; value: number };

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/gm;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

export async function scrape(url: string): Promise<Scrape> {
  const answer = await fetch(`${url}/metrics`);
  if (!answer.ok) throw new Error(`${url}/metrics answered ${answer.status}`);
  const samples = [...(await answer.text()).matchAll(LINE)].map(([, name = "", labels = "", value]) => ({
    name,
    labels: Object.fromEntries([...labels.matchAll(LABEL)].map(([, label = "", text = ""]) => [label, text])),
    value: Number(value),
  }));
  if (samples.length === 0) throw new Error(`${url}/metrics has no metrics`);
  return samples;
}

/** The values of a metric, added up by one of its labels. */
export function byLabel(scrape: Scrape, name: string, label: string): Map<string, number> {
  const sums = new Map<string, number>();
  for (const sample of scrape) {
    if (sample.name !== name) continue;
    const key = sample.labels[label] ?? "";
    sums.set(key, (sums.get(key) ?? 0) + sample.value);
  }
  return sums;
}
