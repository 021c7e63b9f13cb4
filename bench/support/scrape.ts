import { parseMetrics, type Scrape } from "../../src/capacity/observe/metrics-text.ts";

export async function scrape(url: string): Promise<Scrape> {
  const answer = await fetch(`${url}/metrics`);
  if (!answer.ok) throw new Error(`${url}/metrics answered ${answer.status}`);
  const samples = parseMetrics(await answer.text());
  if (samples.length === 0) throw new Error(`${url}/metrics has no metrics`);
  return samples;
}

/** The values of a metric, added up by one of its labels. */
export function byLabel(scraped: Scrape, name: string, label: string): Map<string, number> {
  const sums = new Map<string, number>();
  for (const sample of scraped) {
    if (sample.name !== name) continue;
    const key = sample.labels[label] ?? "";
    sums.set(key, (sums.get(key) ?? 0) + sample.value);
  }
  return sums;
}
