import { expect, it } from "vitest";
import { Lines } from "./lines.ts";

function linesOf(pieces: readonly Uint8Array[]): string[] {
  const taken: string[] = [];
  const lines = new Lines((line) => taken.push(line));
  for (const piece of pieces) lines.push(piece);
  lines.end();
  return taken;
}

it("finds the same lines wherever the bytes are cut", () => {
  const bytes = Buffer.from("one\r\n\nzwölf ☃\nlast");
  const whole = linesOf([bytes]);
  expect(whole).toEqual(["one", "", "zwölf ☃", "last"]);
  for (let at = 1; at < bytes.length; at++) expect(linesOf([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(whole);
  expect(linesOf([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(whole);
});

it("cuts lines that are too long, and holds no more than one of them", () => {
  const long = Buffer.from("x".repeat(40_000));
  for (const pieces of [
    [long, Buffer.from("\n")],
    [long.subarray(0, 30_000), long.subarray(30_000)],
  ]) {
    const lines = linesOf(pieces);
    expect(lines.join("")).toBe(long.toString());
    expect(Math.max(...lines.map(({ length }) => length))).toBe(16_384);
  }
});
