import { abuseHarness, abuseRounds } from "../test/query/hostile/abuse-rounds.test-kit.ts";
import { BOMBS, detonate, isExpectedEnding, MORE_BOMBS } from "../test/query/hostile/bombs.test-kit.ts";

/**
 * The long forms of `test/query/hostile/abuse.long.test.ts` and `bombs.long.test.ts`:
 *
 *     node --expose-gc scripts/abuse.ts [rounds] [seed]   clients that leave, budgets that end, processes that die
 *     node scripts/abuse.ts bombs [milliseconds]          every query that grows without end, on that budget of time
 */
const args = process.argv.slice(2);
process.exitCode = args[0] === "bombs" ? await bombs(Number(args[1] ?? 1_000)) : await rounds();

async function bombs(wallMs: number): Promise<number> {
  const harness = await abuseHarness();
  let failures = 0;
  for (const [name, bomb] of Object.entries({ ...BOMBS, ...MORE_BOMBS })) {
    const { code, message, tookMs } = await detonate(harness, bomb, wallMs);
    const isFine = tookMs < wallMs + 2_000 && isExpectedEnding(name, code);
    if (!isFine) failures++;
    console.log(
      `${isFine ? "ok  " : "FAIL"} ${code.padEnd(16)} ${tookMs.toFixed(0).padStart(6)} ms  ${name}: ${message.slice(0, 100)}`,
    );
    await harness.rows("SELECT count(*) AS n FROM logs");
  }
  await harness.close();
  return failures === 0 ? 0 : 1;
}

async function rounds(): Promise<number> {
  const [count = 1_000, seed = Math.floor(Math.random() * 2 ** 31)] = args.map(Number);
  console.log(`seed ${seed}`);
  const harness = await abuseHarness();
  const report = await abuseRounds(harness, { rounds: count, seed });
  await harness.close();
  console.log(JSON.stringify(report, undefined, 2));
  return report.files.length === 0 && report.processes <= report.pool ? 0 : 1;
}
