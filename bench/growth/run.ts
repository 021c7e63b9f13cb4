import { join } from "node:path";
import { median } from "../../src/capacity/quantile.ts";
import type { Growth } from "../report/growth.ts";
import { probeMachine } from "../suite/probe.ts";
import { medianInterval } from "../suite/statistics.ts";
import { Watch, loadProblems } from "../suite/load.ts";
import type { Curve, CurveContext, Series } from "./curve.ts";
import { exponentOf, verdictOf } from "./fit.ts";

export type CurveRun = CurveContext & {
  commit: string | null;
  say: (line: string) => void;
  /** Of the machine; another one in tests, for it takes seconds. */
  probe?: typeof probeMachine;
};

/** Measures a curve from its smallest to its largest size. Throws where a series has no values, or some that are no figures. */
export async function runCurve(curve: Curve, run: CurveRun): Promise<Growth> {
  const { name, question, x } = curve;
  const { seed, brief, signal, commit } = run;
  const startedAt = new Date().toISOString();
  const machine = await (run.probe ?? probeMachine)(join(run.folder, "probe"));
  const points = new Map<string, Growth["series"][number]["points"]>();
  const opened = await curve.open({ folder: run.folder, seed, brief, signal });
  const watch = new Watch();
  try {
    for (const size of brief ? x.few : x.sizes) {
      signal.throwIfAborted();
      run.say(`${name}: ${size} ${x.unit}`);
      const values = await opened.at(size);
      for (const series of Object.keys(curve.series)) {
        const own = figuresOf(values[series], `${name}: ${series} at ${size} ${x.unit}`);
        const point = { x: size, y: median(own), interval: medianInterval(own, seed) };
        points.set(series, [...(points.get(series) ?? []), point]);
      }
    }
  } finally {
    await opened.close?.();
  }
  const problems = loadProblems(watch.end());
  const series = Object.entries(curve.series).map(([of, about]) => fitted(of, about, points.get(of) ?? []));
  return {
    kind: "growth",
    schema: 1,
    name,
    question,
    x: { unit: x.unit },
    series,
    problems,
    startedAt,
    commit,
    machine,
  };
}

function figuresOf(values: readonly number[] | undefined, what: string): readonly number[] {
  if (values === undefined || values.length === 0) throw new Error(`${what} was not measured`);
  const odd = values.find((value) => !Number.isFinite(value) || value <= 0);
  if (odd !== undefined) throw new Error(`${what} is ${odd}, which is no figure`);
  return values;
}

function fitted(
  name: string,
  { unit, doc, promise, because }: Series,
  points: Growth["series"][number]["points"],
): Growth["series"][number] {
  return {
    name,
    unit,
    doc,
    promise,
    because: because ?? null,
    points,
    exponent: exponentOf(points),
    verdict: verdictOf(points, promise),
  };
}
