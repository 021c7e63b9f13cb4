import { afterAll, beforeAll, expect, test } from "vitest";
import { readArrowMessages, type ArrowMessage } from "../../src/web/client/base/arrow-messages.ts";
import { decimalText, momentText, timeText } from "../../src/web/client/results/cell-values.ts";
import { ResultStore } from "../../src/web/client/results/result-store.ts";
import { CalledServices } from "../api/services.test-kit.ts";

/** What the pages read out of an answer's buffers, against the server's own NDJSON of the same rows. */

let services: CalledServices<"writer">;
beforeAll(async () => {
  services = await CalledServices.start<"writer">([["writer", "write"]]);
  const headers = { "X-Table": "t", "Content-Type": "application/x-ndjson" };
  await services.send("writer", "POST", "/v1/ingest", '{"text":"x"}\n', headers);
}, 120_000);
afterAll(() => services.close());

async function answered(sql: string, type: string): Promise<Response> {
  const response = await services.send("writer", "POST", "/v1/query", sql, { Accept: type });
  if (response.status !== 200) throw new Error(await response.text());
  return response;
}

async function messagesOf(sql: string): Promise<ArrowMessage[]> {
  const { body } = await answered(sql, "application/vnd.apache.arrow.stream");
  if (body === null) throw new Error("an answer without a body");
  return await Array.fromAsync(readArrowMessages(body));
}

async function storeOf(sql: string): Promise<ResultStore> {
  const store = new ResultStore();
  for (const message of await messagesOf(sql)) store.add(message);
  return store;
}

/** Numbers of more digits than JavaScript has come as they are written: what is compared is exact. */
function exactly(_key: string, value: unknown, context?: { source?: string }): unknown {
  const { source = "" } = context ?? {};
  return typeof value === "number" && /^-?\d[\d.]{15,}$/.test(source) ? source : value;
}

const VALUES = [
  "9007199254740993::BIGINT",
  "(-9223372036854775807 - 1)::BIGINT",
  "18446744073709551615::UBIGINT",
  "1::TINYINT",
  "true",
  "1.5::DOUBLE",
  "0.1::FLOAT",
  "1e300",
  "123456789012345678901234567890.12::DECIMAL(38, 2)",
  "-0.05::DECIMAL(4, 2)",
  "'näïve \"text\" 😀'",
  "''",
  "'\\x00\\xFF'::BLOB",
  "TIMESTAMP_NS '2024-01-01 00:00:00.123456789'",
  "TIMESTAMPTZ '2024-01-01 00:00:00.5+00'",
  "TIMESTAMP '1969-12-31 23:59:59.999999'",
  "DATE '2024-02-29'",
  "TIME '12:34:56.789'",
  "'12151fd2-7586-11e9-8f9e-2a86e4085a59'::UUID",
  "[1, NULL, 9007199254740993]",
  "[[TIMESTAMP_NS '2024-01-01 00:00:00.000000001']]",
  "{'a': 1, 'b': ['x', NULL], 'c': {'d': 0.5}}",
  "MAP {'k': 9007199254740993, 'l': NULL}",
  '\'{"a": [1, {"b": null}]}\'::JSON',
  "[1.5, 2.5]::FLOAT[2]",
  "NULL",
];

test("values are the server's own, exact to the last digit, also inside of others", async () => {
  const columns = VALUES.map((value, i) => `${value} AS c${i}`).join(", ");
  const sql = `SELECT ${columns} UNION ALL SELECT ${VALUES.map((_value, i) => `NULL AS c${i}`).join(", ")}`;
  const lines = (await (await answered(sql, "application/x-ndjson")).text()).trimEnd().split("\n");
  const store = await storeOf(sql);
  expect(store.rows).toBe(2);
  for (const [row, line] of lines.entries()) {
    const theirs = JSON.parse(line, exactly) as Record<string, unknown>;
    const ours = JSON.parse(store.rowJson(row), exactly) as Record<string, unknown>;
    for (const [i, value] of VALUES.entries()) {
      // JSON is a text in Arrow.
      const own =
        value.endsWith("::JSON") && row === 0 ? (JSON.parse(String(ours[`c${i}`])) as unknown) : ours[`c${i}`];
      const shown = value.endsWith("::JSON") ? JSON.stringify(own) : own;
      const wanted = value.endsWith("::JSON") ? JSON.stringify(theirs[`c${i}`]) : theirs[`c${i}`];
      expect([value, shown]).toEqual([value, wanted]);
    }
  }
});

test("what JSON has no word for is shown as it is called", async () => {
  const store = await storeOf(
    "SELECT 'NaN'::DOUBLE AS a, '-inf'::DOUBLE AS b, INTERVAL '14 months 3 days 01:02:03' AS c",
  );
  expect(store.window(0, 1, [0, 1])).toEqual([["NaN", "-Infinity"]]);
});

test("rows of many batches are found, sorted with NULL last, searched and put back", async () => {
  const store = await storeOf(
    "SELECT i, CASE WHEN i % 10 = 0 THEN NULL ELSE 9007199254740992 + (i * 7919) % 300001 END AS big, 'row ' || i AS name " +
      "FROM range(300000) r(i)",
  );
  expect(store.rows).toBe(300_000);
  expect(store.window(299_999, 300_010, [0, 2])).toEqual([["299999", "row 299999"]]);
  await store.sort(1, false);
  const [first, second] = store.window(0, 2, [1]).map(([text]) => BigInt(text ?? "0"));
  expect((first ?? 0n) < (second ?? 0n)).toBe(true);
  expect(store.window(299_999, 300_000, [1])).toEqual([[null]]);
  await store.sort(1, true);
  const top = BigInt(store.cell(0, 1).text ?? "0");
  expect(top > (second ?? 0n)).toBe(true);
  expect(store.cell(299_999, 1).text).toBeNull();
  await store.filter("ROW 12345");
  expect(store.rows).toBe(11);
  // A search keeps the order: the largest of `big` first, NULL last.
  const names = ["row 123459", "row 123458", "row 12345"];
  expect(store.window(0, 3, [2])).toEqual(names.map((name) => [name]));
  expect(store.window(10, 11, [2])).toEqual([["row 123450"]]);
  await store.sort(undefined, false);
  expect(store.rows).toBe(11);
  expect(store.window(0, 1, [2])).toEqual([["row 12345"]]);
  await store.filter("");
  expect(store.window(0, 2, [0])).toEqual([["0"], ["1"]]);
});

test("a search that takes longer than the next one does not undo it", async () => {
  const store = await storeOf("SELECT i, 'row ' || i AS name FROM range(60000) r(i)");
  const slow = store.filter("row 1");
  await store.filter("row 59999");
  await slow;
  expect(store.window(0, 2, [1])).toEqual([["row 59999"]]);
  const sorted = store.sort(0, true);
  await store.filter("");
  await sorted;
  expect(store.rows).toBe(60_000);
  expect(store.window(0, 1, [0])).toEqual([["59999"]]);
});

test("rows that come after a sort or a search take part in it once all are here", async () => {
  const messages = await messagesOf("SELECT i, 'row ' || i AS name FROM range(100000) r(i)");
  const first = messages.findIndex(({ kind }) => kind === "batch") + 1;
  const store = new ResultStore();
  for (const message of messages.slice(0, first)) store.add(message);
  await store.sort(0, true);
  await store.filter("row 9");
  expect(store.allRows).toBeLessThan(100_000);
  for (const message of messages.slice(first)) store.add(message);
  await store.arrange();
  expect(store.rows).toBe(11_111);
  expect(store.window(0, 2, [0])).toEqual([["99999"], ["99998"]]);
  await store.filter("");
  expect(store.rows).toBe(100_000);
});

test("a value of megabytes is shown by its beginning, and copied whole", async () => {
  const store = await storeOf("SELECT repeat('ä', 5000000) AS a");
  const [[shown = null] = []] = store.window(0, 1, [0]);
  expect(shown).toMatch(/^ä{300}…$/);
  expect(store.cell(0, 0).text).toHaveLength(5_000_000);
});

test("cells are copied for spreadsheets, programs and documents", async () => {
  const store = await storeOf("SELECT 'a\tb' AS \"x|y\", 9007199254740993 AS n UNION ALL SELECT NULL, 2");
  const range = { fromRow: 0, toRow: 2, columns: [0, 1] };
  expect(store.copied(range, "tsv")).toBe("a b\t9007199254740993\n\t2");
  expect(store.copied(range, "json")).toBe('[\n  {"x|y":"a\\tb", "n":9007199254740993},\n  {"x|y":null, "n":2}\n]');
  expect(store.copied(range, "markdown")).toBe("| x\\|y | n |\n| --- | --: |\n| a\tb | 9007199254740993 |\n|  | 2 |");
});

test("times beyond what a date of JavaScript holds, and before 1970", () => {
  expect(momentText(-1n, 9, "UTC")).toBe("1969-12-31T23:59:59.999999999Z");
  expect(momentText(2n ** 63n - 1n, 6, "UTC")).toBe("infinity");
  expect(momentText(-(2n ** 63n), 6, null)).toBe("-infinity");
  expect(timeText(86_399_999_999n, 6)).toBe("23:59:59.999999");
  expect(decimalText(-5n, 2)).toBe("-0.05");
});

test("a stream that breaks off, or is none, is said to be so", async () => {
  const whole = new Uint8Array(
    await (await answered("SELECT 1 AS a", "application/vnd.apache.arrow.stream")).arrayBuffer(),
  );
  const read = async (bytes: Uint8Array): Promise<number> => {
    let messages = 0;
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        // A byte at a time, as the worst of networks would.
        for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
        controller.close();
      },
    });
    for await (const message of readArrowMessages(stream)) messages += message.kind === "other" ? 0 : 1;
    return messages;
  };
  expect(await read(whole)).toBe(2);
  await expect(read(whole.subarray(0, whole.length - 20))).rejects.toThrow(
    "the response ended in the middle of a message",
  );
  await expect(read(Uint8Array.from(Buffer.from("<html>no</html>")))).rejects.toThrow("not an Arrow IPC stream");
});
