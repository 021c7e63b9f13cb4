import { z } from "zod";

import { nsToRfc3339, rfc3339ToNs } from "../../format/time-text.ts";
import { defineRoute, jsonResponse } from "../../server/route.ts";
import { nameSchemas } from "../../server/schema-names.ts";
import { askedBudget, budgetHeaders } from "../budgets/budget-headers.ts";
import { QUERY_LANGUAGES } from "../contract/query.ts";
import { explore, type Explored } from "../explore/explore.ts";
import { MAX_KEYS, MAX_VALUE_CHARS } from "../explore/explore-query.ts";
import type { QueryDeps } from "./deps.ts";
import { SQL_ERRORS } from "./sql-errors.ts";

/** What a page that explores a table shows beside its rows, by one request. */

const MAX_BUCKETS = 1_000;
const MAX_SERIES = 50;
const MAX_FACETS = 20;
const MAX_VALUES = 1_000;
const MAX_FIELDS = 2_000;
const MAX_KEY_CHARS = 1_000;
const MAX_LEVELS = 32;
const MAX_WHERE_CHARS = 100_000;
const BODY_LIMIT_BYTES = 2 * 1024 * 1024;
const DEFAULT_VALUES = 10;

const name = z
  .string()
  .max(MAX_KEY_CHARS)
  .refine((text) => text.isWellFormed() && !text.includes("\0"), "accepted are Unicode characters but NUL");

const field = z
  .union([name.min(1), z.array(name).min(1).max(MAX_LEVELS)])
  .describe(
    'A column, or a path inside a dynamic one: `props.user.id`, or `["props", "user.id"]` where a key has a dot.',
  );

const time = z.string().transform((text, context) => {
  const ns = rfc3339ToNs(text);
  if (ns !== undefined) return ns;
  context.addIssue({ code: "custom", message: "accepted is an RFC 3339 time of the years 1677 to 2262" });
  return z.NEVER;
});

const valueCount = (most: number) => z.int().min(1).max(most).default(DEFAULT_VALUES);

const facet = z.union([
  field.transform((own) => ({ field: own, values: DEFAULT_VALUES })),
  z.strictObject({
    field,
    values: valueCount(MAX_VALUES).describe("How many of its values, the most frequent first."),
  }),
]);

const request = z.strictObject({
  database: z.string().default("default").describe("Database."),
  table: z.string().describe("Table."),
  from: time.describe("RFC 3339 time: rows with that `at` and later ones."),
  to: time.describe("RFC 3339 time: rows with an earlier `at`."),
  where: z
    .string()
    .min(1)
    .max(MAX_WHERE_CHARS)
    .optional()
    .describe("A condition over the columns, as it stands after WHERE in SQL or `where` in KQL; all rows without."),
  language: z.enum(QUERY_LANGUAGES).default("sql").describe("Of the condition."),
  version: z.int().min(0).optional().describe("The snapshot to read, as `AT (VERSION => n)`; the newest without."),
  histogram: z
    .strictObject({
      buckets: z.int().min(1).max(MAX_BUCKETS).describe("At most so many; as many as the nearest even step gives."),
      by: field.optional().describe("Splits each bucket by the values of this field."),
      values: valueCount(MAX_SERIES).describe("By how many of them, the most frequent in the whole range."),
    })
    .optional(),
  facets: z.array(facet).max(MAX_FACETS).default([]).describe("Fields whose most frequent values are counted."),
  fields: z.array(field).max(MAX_FIELDS).default([]).describe("Fields of which is counted how many rows have them."),
});

const fieldOut = z.union([z.string(), z.array(z.string())]);
const value = z.object({
  value: z
    .string()
    .nullable()
    .describe("As text, so that all digits of integers and times survive, and `nan`; null where a row has none."),
  rows: z.int(),
  cut: z.literal(true).optional().describe(`The value is longer than these ${MAX_VALUE_CHARS} characters.`),
});

const response = z.object({
  rows: z.int().describe("Rows in the range that the condition is true of."),
  snapshot: z.int().describe("The snapshot that was read."),
  sampled: z
    .object({ rows_read: z.int(), rows_total: z.int(), extents_read: z.int(), extents_total: z.int() })
    .nullable()
    .describe(
      "Null where all counts are exact. Else the budget of bytes from the object store was too small for all extents of " +
        "the range, and everything is counted in a random part of them: counts are not scaled up, and are lower bounds.",
    ),
  histogram: z
    .object({
      step_ns: z.int().describe("Nanoseconds of a bucket. Edges are multiples of it since 1970, of weeks on Mondays."),
      by: z
        .object({
          field: fieldOut,
          type: z.string(),
          distinct: z.int().describe("Values in the range; NULL is none."),
          series: z
            .array(value)
            .describe("The most frequent ones, with their rows in all buckets; null is one of them."),
        })
        .nullable(),
      buckets: z
        .array(
          z.object({
            from: z.string().describe("Its first moment; the first and last buckets may reach beyond the range."),
            rows: z.int(),
            by: z.array(z.int()).optional().describe("Of these the rows of each series; the rest are of other values."),
          }),
        )
        .describe("All buckets of the range, empty ones too."),
    })
    .nullable(),
  facets: z.array(
    z.object({
      field: fieldOut,
      type: z.string(),
      rows: z.int().describe("Rows with a value."),
      nulls: z.int().describe("Rows without one."),
      distinct: z.int().describe("How many values there are."),
      values: z.array(value),
    }),
  ),
  fields: z.array(
    z.object({
      field: fieldOut,
      type: z.string(),
      rows: z.int().describe("Rows that have it."),
      keys: z
        .object({ distinct: z.int(), values: z.array(z.object({ key: z.string(), rows: z.int() })) })
        .optional()
        .describe(`Of dynamic ones: the keys of the objects in it, the ${MAX_KEYS} most frequent ones.`),
    }),
  ),
});

nameSchemas({ Exploration: request, Explored: response });

export const exploreRoute = defineRoute({
  method: "POST",
  path: "/v1/explore",
  role: "read",
  tag: "Query",
  summary: "Count what is in a range of time of one table",
  description:
    "For pages that show rows of a table and what there is of them: how many rows, how they are spread over the range, the " +
    "most frequent values of some columns or paths inside dynamic ones, and how many rows have which. All of it is one " +
    "query, with the caller's rights and budgets. The condition is one expression over the columns of the table: no " +
    "sub-query, no other table.",
  compress: true,
  headers: z.object(budgetHeaders),
  json: request,
  jsonLimitBytes: BODY_LIMIT_BYTES,
  responses: [{ status: 200, description: "The counts.", type: "application/json", schema: response }],
  errors: [...SQL_ERRORS, "bad_request_body", "body_too_large", "cancelled", "insufficient_storage"],
  handler:
    ({ query, catalog }: QueryDeps) =>
    async ({ caller, clientAddress, requestId, request: { signal }, headers, json }) => {
      const { from: fromNs, to: toNs, ...asked } = json;
      const who = { caller, address: clientAddress, requestId, signal, budget: askedBudget(headers) };
      return jsonResponse(200, sent(await explore({ query, catalog }, { ...asked, ...who, fromNs, toNs })));
    },
});

function sent({ rows, snapshot, sample, histogram, facets, fields }: Explored): z.input<typeof response> {
  return {
    rows,
    snapshot,
    sampled:
      sample === undefined
        ? null
        : {
            rows_read: sample.rowsRead,
            rows_total: sample.rowsTotal,
            extents_read: sample.extentsRead,
            extents_total: sample.extentsTotal,
          },
    histogram:
      histogram === undefined
        ? null
        : {
            step_ns: Number(histogram.stepNs),
            by:
              histogram.by === undefined
                ? null
                : { ...histogram.by, field: fieldOf(histogram.by), series: [...histogram.by.series] },
            buckets: histogram.buckets.map(({ fromNs, rows: own, series }) => ({
              from: nsToRfc3339(fromNs),
              rows: own,
              ...(histogram.by !== undefined && { by: [...series] }),
            })),
          },
    facets: facets.map((one) => ({ ...one, field: fieldOf(one), values: [...one.values] })),
    fields: fields.map(({ keys, ...one }) => ({
      ...one,
      field: fieldOf(one),
      ...(keys && { keys: { ...keys, values: keys.values.map((key) => ({ key: key.value ?? "", rows: key.rows })) } }),
    })),
  };
}

function fieldOf({ field: own }: { field: string | readonly string[] }): string | string[] {
  return typeof own === "string" ? own : [...own];
}
