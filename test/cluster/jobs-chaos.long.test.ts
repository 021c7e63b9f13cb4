import { expect, test } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { findPostgresPrograms } from "../../src/db/postgres/server-programs.ts";
import { describeReport, runJobChaos } from "./jobs-chaos.ts";

test.skipIf(lacks("PostgreSQL", "ps"))(
  "jobs are neither lost nor done twice while nodes, the server and its database die",
  { timeout: 240_000 },
  async () => {
    const report = await runJobChaos({
      daemons: 5,
      shortJobs: 600,
      longJobs: 20,
      events: 6,
      enqueueMs: 9_000,
      seed: 1,
      postgres: findPostgresPrograms()?.folder,
    });
    // With what happened, so that a failure tells it.
    expect({ problems: report.problems, ran: describeReport(report) }).toMatchObject({ problems: [] });
    expect(report.jobs).toBeGreaterThanOrEqual(620);
    // Where nobody took over from anybody nothing was shown.
    expect(report.takenOver).toBeGreaterThan(0);
    expect(Object.keys(report.events)).toHaveLength(6);
  },
);
