/** Metrics of a server at one moment, as Prometheus reads them. */
export type Scrape = readonly Sample[];

export type Sample = { name: string; labels: Readonly<Record<string, string>>; value: number };

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/** The samples of a text in the exposition format of Prometheus; lines that are none are left out. */
export function parseMetrics(text: string): Scrape {
  return text.split("\n").flatMap((line): Sample[] => {
    const [, name, labels = "", value] = LINE.exec(line) ?? [];
    if (name === undefined) return [];
    // No label is a property that every object has.
    const own: Record<string, string> = Object.create(null);
    for (const [, label = "", labelText = ""] of labels.matchAll(LABEL)) own[label] = labelText;
    return [{ name, labels: own, value: Number(value) }];
  });
}
