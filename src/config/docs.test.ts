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
