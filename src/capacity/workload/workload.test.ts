import { describe, expect, it } from "vitest";
import { WORKLOAD } from "./samples.test-kit.ts";
import { parseWorkload, readWorkload } from "./workload.ts";

const without = (line: string) => WORKLOAD.replace(line, "");

describe("a workload file", () => {
  it("gives bytes, seconds and times a second", () => {
    const { deployment, ingest, queries } = parseWorkload("w.toml", WORKLOAD);
    expect(deployment).toMatchObject({ mode: "staged", zones: 3, max_utilization: 0.7, max_cores: 16 });
    expect(ingest).toMatchObject([{ rows: 147_000, bytes_per_row: 340, retention: 90 * 86_400, peak_length: 1_800 }]);
    expect(queries).toMatchObject([{ rate: 20, range: 900, cached: 0.9 }]);
  });

  it.each([
    ["an unknown key", `${WORKLOAD}colour = "red"\n`, "w.toml: queries[0].colour: no such key; take it out"],
    ["a rate without a unit", WORKLOAD.replace('"147_000/s"', '"147_000"'), 'ingest[0].rows: "147_000" is not a rate'],
    ["a bare number", WORKLOAD.replace('"147_000/s"', "147000"), "ingest[0].rows: "],
    ["a negative rate", WORKLOAD.replace('"147_000/s"', '"-1/s"'), 'ingest[0].rows: "-1/s" is not a rate'],
    ["a key that is missing", without('retention = "90 d"\n'), "ingest[0].retention: "],
    ["a mode that is none", WORKLOAD.replace('"staged"', '"often"'), "deployment.mode: "],
    [
      "a zone to lose of one",
      WORKLOAD.replace("zones = 3", "zones = 1"),
      "deployment.zones: the loss of a zone needs 2",
    ],
    [
      "one process that survives",
      WORKLOAD.replace('"staged"', '"single"'),
      "deployment.survive: one process survives no",
    ],
    [
      "more sandboxes than one process runs",
      `${WORKLOAD.replace('"staged"', '"single"').replace(/survive = "[a-z]+"/, "")}\n[sandboxes]\nat_once = 251\ncreated = "1/s"\nmemory = "1 GiB"\n`,
      "sandboxes.at_once: one process runs 250 at most",
    ],
    [
      "a query of nothing",
      WORKLOAD.replace('reads = "logs"', 'reads = "cats"'),
      "queries[0].reads: cats is none of logs",
    ],
    ["a share above one", WORKLOAD.replace("cached = 0.9", "cached = 1.5"), "queries[0].cached: "],
    [
      "two streams of a name",
      `${WORKLOAD}${WORKLOAD.slice(WORKLOAD.indexOf("[[ingest]]"), WORKLOAD.indexOf("[[queries]]"))}`,
      "logs is there twice",
    ],
    ["no streams", 'name = "x"\n[deployment]\nmode = "sync"\n', "w.toml: ingest: "],
    ["no TOML", "name = \n", "w.toml, line 1, column "],
    ["a key of every object", `${WORKLOAD}__proto__ = 1\n`, "w.toml: queries[0].__proto__: no such key"],
  ])("is refused for %s, in one sentence with the place", (_what, text, expected) => {
    let said = "";
    try {
      parseWorkload("w.toml", text);
    } catch (error) {
      said = (error as Error).message;
    }
    expect(said).toContain(expected);
    expect(said).toMatch(/^w\.toml/);
    expect(said).not.toContain("\n");
  });

  it("that is not there is said", async () => {
    await expect(readWorkload("/nowhere/w.toml")).rejects.toThrow(/cannot read the workload: .*\/nowhere\/w.toml/);
  });
});
