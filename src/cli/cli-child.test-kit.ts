/** The process that the tests start: the command line without the role, so serving prints what it was asked to serve. */
import "../core/warnings.ts";
import { FEATURES } from "../../roles/features.ts";
import { MIGRATIONS } from "../catalog/migrations.test-kit.ts";
import { systemClock } from "../core/clock.ts";
import { systemRandom } from "../core/random.ts";
import { valuesOf } from "../config/option.ts";
import { INGEST_OPTIONS } from "../ingest/options.ts";
import type { ServeOptions } from "../client/context.ts";
import { runCli } from "./main.ts";

const { stdin, stdout, stderr, env } = process;

function serve({ listen, warnings, config }: ServeOptions): Promise<number> {
  stdout.write(
    `${JSON.stringify({ listen, warnings, flushMaxRows: valuesOf(INGEST_OPTIONS, config).flushMaxRows })}\n`,
  );
  return Promise.resolve(0);
}

process.exitCode = await runCli(process.argv.slice(2), {
  serve,
  features: () => Promise.resolve(FEATURES),
  migrations: () => Promise.resolve(MIGRATIONS),
  version: "1.2.3",
  env,
  stdin,
  stdout,
  stderr,
  clock: systemClock,
  random: systemRandom,
});
