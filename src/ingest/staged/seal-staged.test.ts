import { expect, test } from "vitest";
import type { ErrorCode } from "../../core/errors.ts";
import { decodeTlm } from "../../format/tlm-decode.ts";
import { DEFAULT_SHAPE } from "../../format/types.ts";
import type { Sealer, SealResult } from "../seal.ts";
import { seal } from "../seal-thread.ts";
import { sealAcknowledged, Unsealable } from "./seal-staged.ts";

const encoder = new TextEncoder();

const byText = (a: string, b: string) => (a < b ? -1 : 1);

function bodyOf(lines: string[], rows = lines.length) {
  return { bytes: encoder.encode(lines.join("\n")), evolve: true, arrivedAtNs: 1n, rows };
}

/** A sealer that takes only so many bytes into one extent, as a real one takes only so many bytes of columns. */
function narrow(maxBytes: number): Sealer {
  return async (task): Promise<SealResult> => {
    let sizeBytes = 0;
    const refused = new Map<number, ErrorCode>();
    const taken = task.bodies.filter(({ bytes }, index) => {
      if (sizeBytes + bytes.length <= maxBytes) return (sizeBytes += bytes.length) > 0;
      refused.set(index, sizeBytes === 0 ? "body_too_large" : "too_many_requests");
      return false;
    });
    const sealed = await seal({ ...task, bodies: taken });
    const outcomes = task.bodies.map((_, index) => {
      const code = refused.get(index);
      const kept = sealed.outcomes.shift();
      return code === undefined && kept !== undefined
        ? kept
        : { ok: false as const, error: { code: code ?? "internal", message: "too much", details: {} } };
    });
    return { ...sealed, outcomes };
  };
}

function sealing(maxBytes: number) {
  return { seal: narrow(maxBytes), sealThreads: 1, format: "tlm" as const };
}

test("bodies that are too much for one extent become several, in which every row is once", async () => {
  const lines = (name: string) => Array.from({ length: 20 }, (_, i) => `{"body":"${name} ${i}","${name}":${i}}`);
  const bodies = ["a", "b", "c"].map((name) => bodyOf(lines(name)));
  const wholeBytes = bodies[0]?.bytes.length ?? 0;
  for (const maxBytes of [3 * wholeBytes, wholeBytes, Math.floor(wholeBytes / 3), 60]) {
    const { extents, newColumns } = await sealAcknowledged(sealing(maxBytes), DEFAULT_SHAPE, bodies);
    const rows = extents.flatMap(
      ({ bytes }) => decodeTlm(bytes).columns.find(({ spec }) => spec.name === "body")?.values,
    );
    expect(rows.map(String).toSorted(byText)).toEqual(
      ["a", "b", "c"].flatMap((name) => lines(name).map((_, i) => `${name} ${i}`)).toSorted(byText),
    );
    expect(newColumns.map(({ name }) => name)).toEqual(["a", "b", "c"]);
    expect(extents.length).toBeGreaterThanOrEqual(Math.ceil((3 * wholeBytes) / maxBytes));
  }
});

test("a body that cannot be sealed is told, and so is one that has not the rows that were acknowledged", async () => {
  const wrong: [ReturnType<typeof bodyOf>, string][] = [
    [bodyOf(["{"]), "line 1"],
    [bodyOf(["{}"], 2), "has 1 rows; 2 were acknowledged"],
    [bodyOf(["{}", "{}"], 3), "has 2 rows; 3 were acknowledged"],
    [bodyOf(["{}".padEnd(100)]), "cannot be sealed in parts either"],
  ];
  for (const [body, reason] of wrong) {
    const failure = await sealAcknowledged(sealing(50), DEFAULT_SHAPE, [body]).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(Unsealable);
    expect(String(failure)).toContain(reason);
  }
});
