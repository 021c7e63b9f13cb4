import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { runHere } from "../../src/cli/cli.test-kit.ts";

const ENVIRONMENTS = fileURLToPath(new URL("../../terraform/envs", import.meta.url));

it.each(["small", "medium", "large"])("the capacity of %s is what its workload is planned with", async (name) => {
  const folder = join(ENVIRONMENTS, name);
  const words = ["plan", join(folder, "workload.toml"), "--costs", join(ENVIRONMENTS, "costs.json")];
  const { code, stdout } = await runHere([...words, "--format", "tfvars"]);
  expect(code).toBe(0);
  // engine plan terraform/envs/NAME/workload.toml --costs terraform/envs/costs.json --format tfvars
  expect(JSON.parse(stdout)).toEqual(JSON.parse(await readFile(join(folder, "capacity.auto.tfvars.json"), "utf8")));
});
