import { drawnSeed } from "../../src/core/drawn-seed.test-kit.ts";
import { expect, it } from "vitest";
import { findPostgresPrograms } from "../../src/db/postgres/server-programs.ts";
import { describeInCage } from "../../src/sandbox/runtime/cage.test-kit.ts";
import { describeReport, runSandboxChaos } from "./chaos.ts";

describeInCage("sandboxes of a cluster", () => {
  it("are neither lost nor left behind while nodes and control planes are killed", { timeout: 300_000 }, async () => {
    const wanted = { kills: 10, creates: 60, disconnects: 30 };
    const report = await runSandboxChaos({ ...wanted, seed: drawnSeed(), postgres: findPostgresPrograms()?.folder });
    // With what happened, so that a failure tells it.
    expect({ problems: report.problems, ran: describeReport(report) }).toMatchObject({ problems: [] });
    expect(report.kills).toBeGreaterThanOrEqual(wanted.kills);
    expect(report.creates).toBeGreaterThanOrEqual(wanted.creates);
    // Where nothing was lost nothing was shown.
    expect(report.failed).toBeGreaterThan(0);
    expect(report.returned).toBeGreaterThan(0);
  });
});
