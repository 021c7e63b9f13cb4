import { describe, expect, test } from "vitest";
import { cutAtNewlines } from "../format/ndjson/lines.ts";
import { decodeTlm } from "../format/tlm-decode.ts";
import { DEFAULT_SHAPE, type ColumnSpec } from "../format/types.ts";
import type { SealTask } from "./seal.ts";
import { sealInCuts } from "./seal-cuts.ts";
import { seal } from "./seal-thread.ts";

const encoder = new TextEncoder();

function taskOf(lines: readonly string[], columns: readonly ColumnSpec[] = DEFAULT_SHAPE): SealTask {
  const bytes = encoder.encode(lines.join("\n"));
  return { columns, bodies: [{ bytes, evolve: true, arrivedAtNs: 7n }], format: "tlm" };
}

/** Rows as objects, columns that an extent lacks left out, like NULLs. */
function rowsOf(extents: readonly { bytes: Uint8Array }[]): Record<string, unknown>[] {
  return extents.flatMap(({ bytes }) => {
    const { rows, columns } = decodeTlm(bytes);
    return Array.from({ length: rows }, (_, row) => {
      const values = columns.map(({ spec, values: all }) => [spec.name, all[row]] as const);
      return Object.fromEntries(values.filter(([, value]) => value !== null && value !== undefined));
    });
  });
}

/** Sealing in cuts of every size must come to what sealing whole comes to. */
async function expectSame(task: SealTask): Promise<void> {
  const whole = await seal(task);
  const sizeBytes = task.bodies[0]?.bytes.byteLength ?? 0;
  for (const cutBytes of [1, 7, 40, Math.ceil(sizeBytes / 3), Math.max(sizeBytes, 1)]) {
    const cut = await sealInCuts(seal, task, cutBytes);
    expect(cut.outcomes, `cuts of ${cutBytes}`).toEqual(whole.outcomes);
    if (whole.outcomes[0]?.ok !== true) continue;
    expect(cut.newColumns).toEqual(whole.newColumns);
    expect(rowsOf(cut.extents)).toEqual(rowsOf(whole.extent === undefined ? [] : [whole.extent]));
  }
}

const fields = (from: number, to: number) =>
  JSON.stringify(Object.fromEntries(Array.from({ length: to - from }, (_, i) => [`c${from + i}`, i])));

describe("a body sealed in cuts", () => {
  test.each<[string, string[]]>([
    ["rows of one shape", Array.from({ length: 50 }, (_, n) => `{"body":"row ${n}","n":${n}}`)],
    ["columns that only some rows have", ['{"a":1}', '{"b":2}', '{"c":3,"a":4}', '{"b":5}']],
    ["blank lines", ["", '{"a":1}', "", "  ", "\r", '{"a":2}', ""]],
    ["more new columns than a request may add", [fields(0, 20), fields(10, 30), fields(25, 45), fields(0, 45)]],
    ["exactly as many as it may", [fields(0, 20), fields(10, 32), fields(0, 32)]],
    ["one name in two spellings", ['{"Name":1}', '{"name":2}', '{"NAME":3}', '{"name":4,"Name":5}']],
    ["a line that fails in the middle", ['{"a":1}', '{"b":2}', "{broken", '{"c":3}', "{broken too"]],
    ["a line that fails at the end", ['{"a":1}', '{"b":2}', '{"c":']],
    ["no rows", ["", " ", ""]],
    ["nothing", []],
  ])("%s", (_name, lines) => expectSame(taskOf(lines)));

  test("values and times that do not fit, with the line in the whole body", async () => {
    const typed: ColumnSpec[] = [...DEFAULT_SHAPE, { name: "n", type: { kind: "int" } }];
    const lines = Array.from({ length: 60 }, (_, i) => {
      if (i % 10 === 3) return "";
      return i < 30 ? `{"n":${i}}` : `{"n":"${i}","at":${i < 45 ? i : '"soon"'},"new${i % 3}":1}`;
    });
    const task = taskOf(lines, typed);
    await expectSame(task);
    const { outcomes } = await sealInCuts(seal, task, 100);
    expect(outcomes).toMatchObject([
      {
        misfits: [
          { code: "at_unreadable", count: 14, firstLine: 46 },
          { code: "value_in_props", column: "n", count: 27, firstLine: 31 },
        ],
      },
    ]);
  });

  test("at the most columns of a table", async () => {
    const known = Array.from({ length: 1_990 }, (_, i): ColumnSpec => ({ name: `k${i}`, type: { kind: "string" } }));
    await expectSame(taskOf([fields(0, 8), fields(4, 12)], [...DEFAULT_SHAPE, ...known]));
  });

  test("a cut that cannot be sealed fails the body, but not before the others are done with its bytes", async () => {
    let sealed = 0;
    const oneDies = async (task: SealTask) => {
      if (task.bodies[0]?.bytes.includes("x".charCodeAt(0)) === true) throw new Error("the thread died");
      await new Promise<void>((resolve) => setTimeout(resolve, 20));
      sealed++;
      return seal(task);
    };
    const lines = ['{"a":1}', '{"x":1}', '{"b":1}', '{"c":1}'];
    await expect(sealInCuts(oneDies, taskOf(lines), 1)).rejects.toThrow("the thread died");
    expect(sealed).toBe(3);
  });

  test("is cut only behind line feeds, and nothing is left out", () => {
    const bytes = encoder.encode("aa\nb\n\nccc\nd");
    for (let size = 1; size < 12; size++) {
      const cuts = cutAtNewlines(bytes, size);
      expect(Buffer.concat(cuts).equals(bytes)).toBe(true);
      for (const cut of cuts.slice(0, -1)) expect(cut.at(-1)).toBe(10);
    }
  });
});
