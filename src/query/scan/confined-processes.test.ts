import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { silentLog } from "../../core/log.ts";
import { openConfinement } from "../../io/confinement/open-confinement.ts";
import { createQueryHarness } from "../query.test-kit.ts";

/** Query processes under the confinement of the system (`src/io/confinement/`). */

test.runIf((await openConfinement({ log: silentLog, tempDir: tmpdir() })).isOn)(
  "every process of a pool is confined, and goes first when memory runs out",
  async () => {
    const harness = createQueryHarness({ pool: { children: 2 } });
    await Promise.all([harness.text("SELECT 1"), harness.text("SELECT 1")]);
    const pids = harness.pool.pids();
    expect(pids).toHaveLength(2);
    for (const pid of pids) {
      const status = readFileSync(`/proc/${pid}/status`, "utf8");
      expect(status).toMatch(/^NoNewPrivs:\s+1$/m);
      expect(status).toMatch(/^Seccomp:\s+2$/m);
      expect(readFileSync(`/proc/${pid}/oom_score_adj`, "utf8")).toBe("1000\n");
    }
    await harness.close();
  },
);

const leaky = { name: "leaky", isOn: true, wrap: (command: readonly string[]) => [...command] };

test("a query process that finds no confinement takes no queries", async () => {
  const harness = createQueryHarness({ pool: { confinement: leaky } });
  await expect(harness.text("SELECT 1")).rejects.toMatchObject({ code: "unavailable" });
  await harness.close();
});
