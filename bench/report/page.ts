import { shown, signedPercent } from "../support/report.ts";
import type { Machine } from "../../src/capacity/machine.ts";
import type { Result, Summary } from "../suite/result.ts";
import { amount, MARKS, measuredBy, resultText, takenText, wantedText } from "./figures.ts";
import { lastStanding, standingOf, type Goal } from "./goals.ts";
import { growthCharts } from "./growth-chart.ts";
import type { Growth } from "./growth.ts";
import { html, jsonScript, type Html } from "./html.ts";
import { distancesIn, nameOf } from "./limits.ts";
import { STYLE } from "./page-style.ts";
import { ratioChart } from "./ratio-chart.ts";
import { missOf, summaryOf, type HeldOut, type Report } from "./report.ts";

/**
 * One page that needs nothing else: no script, style or font of another place, for screens in light and dark and for
 * paper, and readable without colours. The data is in it, for programs.
 */
export function reportPage(report: Report): string {
  const { release, goals, results, growth, plan, heldOut = [] } = report;
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>Performance of release ${release}</title>
        ${STYLE}
      </head>
      <body>
        <h1>Performance of release ${release}</h1>
        <ul class="summary">
          ${summaryOf(report).map((line) => html`<li>${line}</li> `)}
        </ul>
        ${machinesSection(results)}
        ${
          plan &&
          html`<section id="plan">
            <h2>Plan</h2>
            ${plan}
          </section>`
        }
        ${heldOutSection(heldOut)} ${goalsSection(goals, release)} ${limitsSection(results)} ${resultsSection(results)}
        ${growthSection(growth)} ${jsonScript("report", { release, goals, results, growth, heldOut })}
      </body>
    </html> `;
  return `${page.text.trimEnd()}\n`;
}

function table(head: readonly string[], rows: readonly (readonly (Html | string)[])[]): Html {
  return html`<div class="wide">
    <table>
      <thead>
        <tr>
          ${head.map((name) => html`<th scope="col">${name}</th> `)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (cells) =>
            html`<tr>
              ${cells.map((cell) => html`<td>${cell}</td> `)}
            </tr> `,
        )}
      </tbody>
    </table>
  </div>`;
}

/** One for each machine that results are of. */
function machinesSection(results: readonly Result[]): Html | undefined {
  if (results.length === 0) return undefined;
  const machines = new Map(results.map((result) => [nameOf(result), result.machine]));
  return html`<section id="machine">
    <h2>Machine</h2>
    ${table(
      ["processor", "cores", "memory", "system", "fsync, p50 and p99", "written", "copied", "one core"],
      [...machines.values()].map(machineCells),
    )}
  </section>`;
}

function machineCells(machine: Machine): string[] {
  const { processor, cores, cpuQuota, memoryBytes, kernel, node, fsyncMs } = machine;
  return [
    processor,
    cpuQuota === null ? String(cores) : `${cores}, ${amount(cpuQuota)} allowed`,
    `${(memoryBytes / 1024 ** 3).toFixed(1)} GiB`,
    `Linux ${kernel}, Node ${node}`,
    `${amount(fsyncMs.p50)} and ${amount(fsyncMs.p99)} ms`,
    `${amount(machine.sequentialWriteMiBPerSecond)} MiB/s`,
    `${amount(machine.memoryCopyMiBPerSecond)} MiB/s`,
    `${amount(machine.singleCoreMops)} million rounds/s`,
  ];
}

function heldOutSection(rows: readonly HeldOut[]): Html | undefined {
  if (rows.length === 0) return undefined;
  return html`<section id="held-out">
    <h2>Predicted before it was measured</h2>
    ${table(
      ["load", "measure", "predicted", "measured", "off by"],
      rows.map(({ load, measure, unit, predicted, measured }) => [
        load,
        measure,
        `${amount(predicted.value)} ${unit} (${amount(predicted.low)}–${amount(predicted.high)})`,
        `${amount(measured)} ${unit}`,
        `${signedPercent(missOf({ predicted, measured }))}${isWithin(measured, predicted) ? "" : ", outside"}`,
      ]),
    )}
  </section>`;
}

function isWithin(value: number, { low, high }: { low: number; high: number }): boolean {
  return low <= value && value <= high;
}

function goalsSection(goals: readonly Goal[], release: string): Html {
  const chapters = Map.groupBy(goals, ({ chapter }) => chapter);
  return html`<section id="goals">
    <h2>Goals</h2>
    <p>
      ✓ holds: the whole interval reaches the goal. ? unclear: a part of it does. ✗ missed: none of it does. – no
      result: none of this release; in brackets how the last one stood.
    </p>
    ${[...chapters].map(
      ([chapter, own]) =>
        html`<h3>${chapter}</h3>
          ${table(
            ["goal", "stands", "wanted", "last result", "taken", "measured by"],
            own.map((goal) => [
              goal.title,
              html`<span class="${standingOf(goal, release)}">${standsText(goal, release)}</span>`,
              wantedText(goal),
              resultText(goal),
              takenText(goal),
              measuredBy(goal),
            ]),
          )}`,
    )}
  </section>`;
}

function standsText(goal: Goal, release: string): string {
  const standing = standingOf(goal, release);
  const last = lastStanding(goal);
  return standing !== "none" || last === "none" ? MARKS[standing] : `${MARKS.none} (${MARKS[last]})`;
}

function limitsSection(results: readonly Result[]): Html | undefined {
  const distances = distancesIn(results);
  if (distances.length === 0) return undefined;
  return html`<section id="limits">
    <h2>Distance from the machine's limits</h2>
    ${table(
      ["limit", "of the machine", "the engine", "measured", "distance"],
      distances.map(({ limit, limitValue, figure, figureValue, unit, says }) => [
        limit,
        `${amount(limitValue)} ${unit}`,
        figure,
        `${amount(figureValue)} ${unit}`,
        says,
      ]),
    )}
  </section>`;
}

function resultsSection(results: readonly Result[]): Html | undefined {
  if (results.length === 0) return undefined;
  return html`<section id="results">
    <h2>Results</h2>
    <p>Medians with intervals of 95 %. Ratios are ours over the other side's, of rounds next to each other.</p>
    ${results.map(resultArticle)}
  </section>`;
}

function resultArticle(result: Result): Html {
  const { benchmark, question, notMeasured, noise, options, rounds, startedAt, commit, summary } = result;
  const settings = Object.entries(options).map(([name, value]) => `${name} ${String(value)}`);
  return html`<article>
    <h3>${benchmark}</h3>
    <p>${question}</p>
    ${noise.problems.map((problem) => html`<p class="missed">– no result: ${problem}</p> `)}
    ${ratioChart(benchmark, summary)}
    ${table(["side", "measure", "median", "95 %", "unit", "ratio", "95 %"], summary.map(summaryCells))}
    <p class="hint">
      Not measured: ${notMeasured} ${rounds.length} rounds, ${settings.join(", ")}; ${startedAt.slice(0, 10)},
      ${commit?.slice(0, 8) ?? "no repository"}, ${nameOf(result)}.
    </p>
  </article> `;
}

function summaryCells({ side, measure, median, interval, unit, better, ratio }: Summary): string[] {
  const own = [side, measure, shown(median), between(interval), `${unit} ${better === "more" ? "↑" : "↓"}`];
  return ratio === null ? [...own, "", ""] : [...own, `${shown(ratio.median)}×`, between(ratio.interval)];
}

function between({ low, high }: { low: number; high: number }): string {
  return `${shown(low)}–${shown(high)}`;
}

function growthSection(curves: readonly Growth[]): Html | undefined {
  if (curves.length === 0) return undefined;
  return html`<section id="growth">
    <h2>Growth</h2>
    ${curves.map(
      (curve) =>
        html`<article>
          <h3>${curve.name}</h3>
          <p>${curve.question}</p>
          ${growthCharts(curve)}
          ${table(
            [
              "figure",
              "unit",
              ...(curve.series[0]?.points ?? []).map(({ x }) => `${amount(x)} ${curve.x.unit}`),
              "power",
              "promised",
              "",
              "",
            ],
            curve.series.map(growthCells),
          )}
          ${curve.problems.map((problem) => html`<p class="missed">– marked: ${problem}</p> `)}
        </article> `,
    )}
  </section>`;
}

function growthCells({
  name,
  unit,
  doc,
  points,
  exponent,
  promise,
  verdict,
  because,
}: Growth["series"][number]): string[] {
  const found = { holds: "✓ holds", unclear: "? unclear", exceeds: "✗ more" }[verdict];
  const why = verdict === "holds" || because === null ? doc : `${doc}; ${because}`;
  return [name, unit, ...points.map(({ y }) => amount(y)), `x^${exponent.toFixed(2)}`, promise, found, why];
}
