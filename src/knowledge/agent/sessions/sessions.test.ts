import { expect, test } from "vitest";
import { openMemoryCatalog } from "../../../catalog/sqlite/memory.test-kit.ts";
import { ManualClock } from "../../../core/clock.ts";
import { sessionsContract } from "./sessions.test-kit.ts";
import { cutToBytes, lineOf, storable } from "./text.ts";

sessionsContract("sqlite", async () => {
  const clock = new ManualClock();
  const { catalog } = openMemoryCatalog(clock);
  return { catalog, clock, close: () => catalog.close() };
});

test("a title is one line, and never half a character", () => {
  expect(lineOf(" \r\n\t\n  how  many\torders\u001b[2J?\nsecond", 120)).toBe("how many orders [2J?");
  expect(lineOf("😀😀😀", 2)).toBe("😀…");
  expect(lineOf("\n \n", 10)).toBe("");
  expect(cutToBytes("aé€😀", 10)).toBe("aé€😀");
  expect(["aé€😀bcd", "aé€😀"].map((text) => cutToBytes(text, 9))).toEqual(["aé€…", "aé€…"]);
  expect(Buffer.byteLength(cutToBytes("€".repeat(50), 64))).toBeLessThanOrEqual(64);
  expect(storable("a\0b\ud800")).toBe("ab\ufffd");
});
