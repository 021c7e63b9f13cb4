import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { FEATURES } from "./features.ts";
import { renderCliDoc } from "../src/cli/docs.ts";

test("docs/cli.md is what the commands say (npm run docs writes it)", async () => {
  const written = readFileSync(new URL("../docs/cli.md", import.meta.url), "utf8");
  expect(written).toBe(await renderCliDoc(FEATURES));
});

test("every command has usage, options and examples", async () => {
  const sections = (await renderCliDoc(FEATURES)).split("\n## ").slice(1);
  expect(sections.length).toBeGreaterThan(10);
  for (const section of sections) {
    expect(section).toMatch(/^engine [a-z- ]+\n\n.+\n\n```sh\nengine /);
    expect(section).toContain("- `-h, --help`: ");
    expect(section.match(/```sh\n/g)).toHaveLength(2);
  }
});
