import { describe, expect, test } from "vitest";
import { drawnRandom } from "../../core/drawn-seed.test-kit.ts";
import { JsonOut } from "./json-out.ts";

const out = new JsonOut();

function numberText(value: number): string {
  out.clear();
  out.number(value);
  return Buffer.from(out.bytes.subarray(0, out.length)).toString();
}

describe("a number", () => {
  test("has the digits that JavaScript gives it, and -0 its sign", () => {
    const random = drawnRandom();
    const ends = [0, 0.001, 0.01, 0.1, 1, 9.999, 10, 100.05, 2_097_151, 2_147_483.647, -2_147_483.648, 2_147_483.648];
    const rare = [1e21, 5e-324, 1e-7, 0.1 + 0.2, Number.MAX_VALUE, 2 ** 53, -(2 ** 31), 1.0005];
    const drawn = Array.from(
      { length: 20_000 },
      () => (random.next() - 0.5) * 10 ** Math.floor(random.next() * 12 - 4),
    );
    const rounded = drawn.flatMap((value) => [Math.round(value), Math.round(value * 1_000) / 1_000]);
    const values = [...ends, ...rare, ...drawn, ...rounded].flatMap((value) => [value, -value]);
    expect(values.map(numberText)).toEqual(values.map((value) => (Object.is(value, -0) ? "-0" : String(value))));
  });
});

describe("a text", () => {
  test("is what JSON.stringify makes of it, whatever stands at whatever place, and at whatever place of its source", () => {
    const characters = ["", '"', "\\", "\n", "\u0000", "\u001f", "\u007f", "ü", "🦉"];
    for (const character of characters) {
      for (let before = 0; before <= 9; before++) {
        for (let after = 0; after <= 5; after++) {
          const text = "x".repeat(before) + character + "y".repeat(after);
          const bytes = Buffer.from(text);
          const source = Buffer.concat([Buffer.from('"ü'), bytes]);
          out.clear();
          const view = new DataView(source.buffer, source.byteOffset, source.byteLength);
          expect(out.quoted(view, 3, source.byteLength)).toBe(true);
          const json = Buffer.from(out.bytes.subarray(0, out.length)).toString();
          out.clear();
          out.quotedText(text);
          expect(json).toBe(JSON.stringify(text));
          expect(Buffer.from(out.bytes.subarray(0, out.length)).toString()).toBe(json);
        }
      }
    }
  });

  test("that is not UTF-8 is told", () => {
    for (let before = 0; before <= 5; before++) {
      const source = Buffer.concat([Buffer.alloc(before, "x"), Buffer.from([0xff]), Buffer.from("yyyy")]);
      out.clear();
      expect(out.quoted(new DataView(source.buffer, source.byteOffset, source.byteLength), 0, source.length)).toBe(
        false,
      );
    }
  });
});
