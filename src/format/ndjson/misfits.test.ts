import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { boundedMisfits, MAX_MISFIT_FIELDS, Misfits, type Misfit } from "./misfits.ts";

const value = (field: string, count: number, firstLine: number): Misfit => ({
  code: "kept_in_props",
  field,
  type: "long",
  count,
  firstLine,
});

describe("misfits", () => {
  it("are none, not an empty list, where everything fitted", () => {
    const misfits = new Misfits();
    expect(misfits.all()).toBeUndefined();
    misfits.addAll([], 7);
    expect(misfits.all()).toBeUndefined();
  });

  it("of parts, added with the lines before each, are those of the whole", () => {
    const column = fc.constantFrom("at", "a", "b", "__proto__", "");
    const line = fc.array(fc.oneof(fc.constant(undefined), column), { maxLength: 3 });
    fc.assert(
      fc.property(fc.array(line, { maxLength: 40 }), fc.array(fc.nat(40)), (lines, cuts) => {
        const whole = new Misfits();
        const joined = new Misfits();
        const add = (to: Misfits, fields: (string | undefined)[], at: number) => {
          for (const field of fields) if (field === undefined) to.addTime(at);
            else to.addValue({ name: field, type: { kind: "long" } }, at); // oxfmt-ignore
        };
        for (const [i, fields] of lines.entries()) add(whole, fields, i + 1);
        const ends = [...new Set([...cuts.filter((cut) => cut < lines.length), lines.length])].sort((a, b) => a - b);
        let start = 0;
        for (const end of ends) {
          const part = new Misfits();
          for (const [i, fields] of lines.slice(start, end).entries()) add(part, fields, i + 1);
          joined.addAll(part.all() ?? [], start);
          start = end;
        }
        expect(joined.all()).toEqual(whole.all());
      }),
    );
  });

  it("beyond 32 fields are one entry without a field, and no count is lost", () => {
    const some = Array.from({ length: MAX_MISFIT_FIELDS }, (_, i) => value(`c${i}`, 1, i + 1));
    const time: Misfit = { code: "at_unreadable", count: 5, firstLine: 9 };
    expect(boundedMisfits([time, ...some])).toEqual([time, ...some]);
    const more = [value("d", 2, 40), value("e", 3, 41)];
    expect(boundedMisfits([time, ...some, ...more])).toEqual([
      time,
      ...some,
      { code: "kept_in_props", count: 5, firstLine: 40 },
    ]);
  });
});
