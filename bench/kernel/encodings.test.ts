import { expect, test } from "vitest";
import { keepPrinted } from "../support/printed.test-kit.ts";
import { main } from "./encodings.ts";

/** In its smallest form: that every encoding reads back and every figure is there, not how fast. */
const printed = keepPrinted();

test("every encoding is measured on both shapes", async () => {
  await main(["logs:400", "wide:100", "--rounds", "2"]);
  const text = printed.join("\n");
  for (const extent of ["logs 400", "wide 100"]) {
    for (const encoding of ["plain", "dictionary", "zstd", "dictionary, zstd", "zstd file"]) {
      expect(text).toMatch(new RegExp(`^${extent} +${encoding}( +-?[0-9.]+){11}$`, "m"));
    }
    expect(text).toMatch(new RegExp(`^${extent}( +[0-9.]+){4}$`, "m"));
  }
});

test.for([["logs"], ["logs:0"], ["nothing:10"], ["logs:1e9x"]])("%s is no case", async ([name]) => {
  await expect(main([String(name)])).rejects.toThrow("is no case");
});
