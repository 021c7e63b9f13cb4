import * as fc from "fast-check";
import { expect, it } from "vitest";
import { MessageReader, encodeMessage } from "./messages.ts";

it("gives back messages however they are cut", () => {
  const message = fc.array(fc.oneof(fc.string(), fc.uint8Array({ maxLength: 300 })), { maxLength: 5 });
  fc.assert(
    fc.property(
      fc.array(message, { maxLength: 8 }),
      fc.infiniteStream(fc.integer({ min: 1, max: 50 })),
      (messages, cuts) => {
        const bytes = Buffer.concat(messages.map((fields) => encodeMessage(...fields)));
        const reader = new MessageReader();
        const got: string[][] = [];
        for (let at = 0; at < bytes.length;) {
          const size = cuts.next().value;
          reader.push(bytes.subarray(at, at + size));
          at += size;
          for (let next = reader.next(); next !== undefined; next = reader.next()) got.push(next.map(toHex));
        }
        expect(got).toEqual(messages.map((fields) => fields.map(toHex)));
        expect(reader.rest()).toHaveLength(0);
      },
    ),
  );
});

it("leaves what comes after a message", () => {
  const reader = new MessageReader();
  reader.push(Buffer.concat([encodeMessage("ok"), Buffer.from("raw bytes")]));
  expect(reader.next()?.map(String)).toEqual(["ok"]);
  expect(reader.rest().toString()).toBe("raw bytes");
});

function toHex(field: string | Uint8Array): string {
  return Buffer.from(field).toString("hex");
}
