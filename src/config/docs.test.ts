import { expect, test } from "vitest";
import { renderConfigurationDoc } from "./docs.ts";
import { OPTION_NAMES, optionOf } from "./options.ts";

test("every option has its row", () => {
  const rows = renderConfigurationDoc()
    .split("\n")
    .filter((line) => line.startsWith("| ") && !line.startsWith("| Variable"));
  expect(rows).toHaveLength(OPTION_NAMES.length);
  for (const name of OPTION_NAMES) {
    const { env, toml } = optionOf(name);
    expect(rows.filter((row) => row.includes(`\`${env ?? toml}\` |`))).not.toEqual([]);
  }
});

test("names are unique and follow one pattern", () => {
  const variables = OPTION_NAMES.map((name) => optionOf(name).env).filter((env) => env !== undefined);
  const keys = OPTION_NAMES.map((name) => optionOf(name).toml).filter((key) => key !== undefined);
  expect(new Set(variables).size).toBe(variables.length);
  expect(new Set(keys).size).toBe(keys.length);
  for (const variable of variables) expect(variable).toMatch(/^ENGINE_[A-Z]+(_[A-Z]+)*$/);
  for (const key of keys) expect(key).toMatch(/^[a-z]+\.[a-z]+(_[a-z]+)*$/);
});
