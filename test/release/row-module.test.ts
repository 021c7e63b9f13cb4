import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { compileRows, MODULE_FILE, moduleText } from "../../scripts/wasm/compile.ts";

test(
  "the module that is checked in is what its source gives; `npm run wasm` writes it",
  { timeout: 60_000 },
  async () => {
    expect(readFileSync(MODULE_FILE, "utf8")).toBe(moduleText(await compileRows()));
  },
);
