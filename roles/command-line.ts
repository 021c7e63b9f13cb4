import { runCli } from "../src/cli/main.ts";
import { systemClock } from "../src/core/clock.ts";
import { systemRandom } from "../src/core/random.ts";
import { VERSION } from "../src/core/version.ts";

/** Runs the command line of this process and leaves its exit code behind. */
export async function runCommandLine(): Promise<void> {
  const { stdin, stdout, stderr, env } = process;
  process.exitCode = await runCli(process.argv.slice(2), {
    serve: async (options) => {
      const { runRoles } = await import("./run.ts");
      return runRoles(options);
    },
    migrations: async () => (await import("./migrations.ts")).MIGRATIONS,
    version: VERSION,
    env,
    stdin,
    stdout,
    stderr,
    clock: systemClock,
    random: systemRandom,
  });
}
