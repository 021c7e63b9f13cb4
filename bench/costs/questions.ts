/** The rows that a query answers with. */
export async function ask(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const answer = await fetch(`${url}/v1/query`, { method: "POST", body: sql });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`the query answered ${answer.status}: ${text}\n${sql}`);
  const lines = text.split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** How many rows the table holds. */
export async function rowsIn(url: string, table: string): Promise<number> {
  const [row] = await ask(url, `SELECT count(*) AS n FROM ${table}`);
  return Number(row?.["n"]);
}
