import { runCli } from "../src/cli/main.ts";
import { systemClock } from "../src/core/clock.ts";
import { systemRandom } from "../src/core/random.ts";
import { VERSION } from "../src/core/version.ts";
import type { EngineFeature } from "./features.ts";

/**
 * Runs the command line of this process and leaves its exit code behind. `features`: what the program consists of;
 * those of `roles/features.ts` unless given.
 */
export async function runCommandLine(features?: readonly EngineFeature[]): Promise<void> {
  const listed = async () => features ?? (await import("./features.ts")).FEATURES;
  const { stdin, stdout, stderr, env } = process;
  process.exitCode = await runCli(process.argv.slice(2), {
    serve: async (options) => {
      const { runRoles } = await import("./run.ts");
      return runRoles({ ...options, features });
    },
    embed: async (loaded, how) => {
      const { embedEngine } = await import("./embedded.ts");
      return embedEngine({ ...loaded, ...how, features, isLocal: true });
    },
    features: listed,
    migrations: async () => (await import("../src/feature/collect.ts")).migrationsOf(await listed()),
    version: VERSION,
    env,
    stdin,
    stdout,
    stderr,
    clock: systemClock,
    random: systemRandom,
  });
}
