import type { Plan } from "../model/plan.ts";
import type { Comparison } from "../observe/workload-of.ts";
import type { Cost } from "../prices.ts";
import { bytesText, GIB, secondsText, threeDigits } from "../units.ts";

/** The parts of a plan as people read them, whether as text or as a page. */
export type Section = { title: string; head: readonly string[]; rows: readonly (readonly string[])[] } | Sentences;
type Sentences = { title: string; sentences: readonly string[] };

export function sectionsOf(plan: Plan, cost: Cost | undefined): Section[] {
  const sections: Section[] = [
    {
      title: "Nodes",
      head: ["role", "nodes", "cores", "memory", "disk", "busy: mean", "peak", "after the loss", "if costs are high"],
      rows: plan.roles.map(({ role, nodes, cores, memoryBytes, diskBytes, utilization, p90 }) => [
        role,
        String(nodes),
        String(cores),
        gibText(memoryBytes),
        gibText(diskBytes),
        percent(utilization.mean),
        percent(utilization.peak),
        percent(utilization.afterLoss),
        p90 === null
          ? "not reached"
          : p90.nodes === nodes && p90.cores === cores
            ? "the same"
            : `${p90.nodes} × ${p90.cores}`,
      ]),
    },
    { title: "Storage", head: ["what", "how much"], rows: storageRows(plan) },
    {
      title: "Waits at the peak",
      head: ["what", "p50", "p99"],
      rows: [
        ...[...plan.ingest, ...plan.queries].map(({ name, p50, p99 }) => [name, secondsText(p50), secondsText(p99)]),
        ["until rows are seen (usual, most)", secondsText(plan.freshness.usual), secondsText(plan.freshness.most)],
      ],
    },
    {
      title: "What runs out first",
      head: ["what", "at", "of the peak", "what helps"],
      rows: plan.bottlenecks.map(({ name, factor, rowsPerSecond, remedy }) => [
        name,
        `${threeDigits(rowsPerSecond)} rows/s`,
        `${threeDigits(factor)}×`,
        remedy,
      ]),
    },
    sentences("Twice the load", plan.twice, "the same nodes carry it"),
  ];
  if (cost !== undefined) sections.push(costSection(cost));
  if (plan.unreached.length > 0) sections.push({ title: "Not reached", sentences: plan.unreached });
  sections.push(sentences("Taken for granted", plan.assumptions, "nothing beyond what was measured"));
  return sections;
}

/** What is there beside what the model expects of the same load. */
export function comparedSection(compared: readonly Comparison[]): Section {
  return {
    title: "What is there",
    head: ["role", "nodes", "cores", "busy", "expected", "verdict"],
    rows: compared.map(({ role, nodes, cores, used, expected, verdict }) => [
      role,
      String(nodes),
      threeDigits(cores),
      threeDigits(used),
      threeDigits(expected),
      verdict,
    ]),
  };
}

function sentences(title: string, said: readonly string[], otherwise: string): Sentences {
  return { title, sentences: said.length === 0 ? [otherwise] : said };
}

function storageRows({ storage, requestsPerMonth, postgres }: Plan): string[][] {
  const { rawBytes, storedBytes, replacedBytes, writtenBytesPerMonth, catalogBytes } = storage;
  const rows = [
    ["rows that are kept, as NDJSON", bytesText(rawBytes)],
    ["the same at rest", bytesText(storedBytes)],
    ["replaced by merges, for a day", bytesText(replacedBytes)],
    ["written in a month", bytesText(writtenBytesPerMonth)],
  ];
  if (catalogBytes !== null) rows.push(["catalog", bytesText(catalogBytes)]);
  if (postgres !== null) {
    rows.push(
      ["PostgreSQL: cores", String(postgres.cores)],
      ["connections", String(postgres.connections)],
      ["commits a second at the peak", threeDigits(postgres.commitsPerSecond)],
      ["log in a month", bytesText(postgres.walBytesPerMonth)],
      ["writes a second at the peak", threeDigits(postgres.iops)],
    );
  }
  for (const [kind, count] of Object.entries(requestsPerMonth ?? {}))
    if (count > 0) rows.push([`${kind} requests in a month`, threeDigits(count)]);
  return rows;
}

function costSection({ currency, lines, perMonth, unpriced }: Cost): Section {
  const rows = [...lines, { what: "together", perMonth }].map((line) => [line.what, threeDigits(line.perMonth)]);
  const missing = unpriced.length === 0 ? "" : ` (no price of ${unpriced.join(", ")})`;
  return { title: `Cost of a month${missing}`, head: ["what", currency], rows };
}

function gibText(bytes: number): string {
  return `${threeDigits(bytes / GIB)} GiB`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}
