import { z } from "zod";
import { EngineError } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import { foldName, isName } from "../../core/names.ts";
import { rfc3339ToNs } from "../../format/time-text.ts";
import { keptJson, keptText, shortText } from "../../server/schemas.ts";
import { DASHBOARD_LIMITS } from "./limits.ts";

/**
 * The document of a dashboard: what a client writes and reads back, the fields in the order of these schemas.
 *
 * Fields that nobody knows are refused, so that a typing error does not vanish. Two places are kept as they come, because
 * whoever draws a panel decides about them: the `type` of a panel, which may be one that only a plug-in or a later user
 * interface knows, and its `options`.
 */

/** Types of panels that the user interface draws. */
const PANEL_TYPES = ["timeseries", "bar", "stat", "table", "logs", "heatmap", "pie", "text"] as const;

const LANGUAGES = ["sql", "kql"] as const;

export const dashboardQuery = z.strictObject({
  language: z.enum(LANGUAGES),
  text: keptText(DASHBOARD_LIMITS.queryChars).min(1).describe("As the routes of queries take it."),
  database: z
    .string()
    .refine(isName, "accepted is the name of a database")
    .default("default")
    .describe("Where the query runs. Only those who may use it see the dashboard."),
});

const { columns, lastRow, panelRows } = DASHBOARD_LIMITS;

const panelGrid = z
  .strictObject({
    x: z
      .int()
      .min(0)
      .max(columns - 1)
      .describe("The first column, from 0."),
    y: z.int().min(0).max(lastRow).describe("The first row, from 0."),
    w: z.int().min(1).max(columns).describe("Columns."),
    h: z.int().min(1).max(panelRows).describe("Rows."),
  })
  .refine(({ x, w }) => x + w <= columns, `x and w together are at most ${columns} columns`)
  .describe(`Place on a grid of ${columns} columns. Panels may overlap; whoever draws them makes room.`);

const panelFields = {
  title: keptText(DASHBOARD_LIMITS.titleChars).default(""),
  type: shortText(DASHBOARD_LIMITS.typeChars).describe(
    `One of ${PANEL_TYPES.map((type) => `\`${type}\``).join(", ")}; any other one is kept.`,
  ),
  grid: panelGrid,
  queries: z.array(dashboardQuery).max(DASHBOARD_LIMITS.queriesOfPanel).default([]),
  options: z
    .record(z.string(), keptJson)
    .default({})
    .describe("How the panel is drawn. Kept as it is: which options there are is for the type to say."),
};

const panelId = shortText(DASHBOARD_LIMITS.idChars);

/** As a client sends it. */
const panelInput = z.strictObject({
  id: panelId.optional().describe("Unique in its dashboard; a UUID where it is absent."),
  ...panelFields,
});

/** As it is kept. */
export const dashboardPanel = z.strictObject({ id: panelId, ...panelFields });

const value = keptText(DASHBOARD_LIMITS.valueChars);

const variableName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "accepted are ASCII letters, digits and _, not beginning with a digit")
  .max(DASHBOARD_LIMITS.variableNameChars)
  .describe("Unique without regard to letter case, as names of parameters are.");

const variable = { name: variableName, label: keptText(DASHBOARD_LIMITS.titleChars).optional() };
const choice = {
  default: z.union([value, z.array(value).max(DASHBOARD_LIMITS.valuesOfVariable)]).optional(),
  multi: z.boolean().optional().describe("Whether several values may be chosen; then `default` may be several."),
};
const INTERVAL = /^(?:auto|[1-9][0-9]{0,8}(?:ms|s|m|h|d|w))$/;
const interval = z.string().regex(INTERVAL, "accepted are intervals like `30s`, `5m`, `1h`, `7d`, and `auto`");
const values = <S extends z.ZodType>(schema: S) => z.array(schema).min(1).max(DASHBOARD_LIMITS.valuesOfVariable);

export const dashboardVariable = z
  .discriminatedUnion("type", [
    z.strictObject({
      ...variable,
      type: z.literal("query"),
      query: dashboardQuery.describe("Gives the values: the first column of its rows."),
      ...choice,
    }),
    z.strictObject({ ...variable, type: z.literal("list"), values: values(value), ...choice }),
    z.strictObject({ ...variable, type: z.literal("text"), default: value.optional() }),
    z.strictObject({
      ...variable,
      type: z.literal("interval"),
      values: values(interval),
      default: interval.optional(),
    }),
  ])
  .refine((one) => !Array.isArray(one.default) || ("multi" in one && one.multi === true), {
    path: ["default"],
    message: "several values are for a variable with `multi`",
  });

const RELATIVE = /^now(?:[+-][1-9][0-9]{0,8}(?:s|m|h|d|w|M|y))?(?:\/(?:m|h|d|w|M|y))?$/;
const moment = z
  .string()
  .max(DASHBOARD_LIMITS.timeChars)
  .refine(
    (at) => RELATIVE.test(at) || rfc3339ToNs(at) !== undefined,
    "accepted are times like `now`, `now-6h` and `now-1d/d`, and RFC 3339",
  );

const timeRange = z
  .strictObject({ from: moment, to: moment })
  .refine(isForward, { path: ["from"], message: "is not before `to`" });

/** Relative ends move, and are compared when they are used. */
function isForward({ from, to }: { from: string; to: string }): boolean {
  const [start, end] = [rfc3339ToNs(from), rfc3339ToNs(to)];
  return start === undefined || end === undefined || start < end;
}

const { refreshSecs } = DASHBOARD_LIMITS;

const settings = z.strictObject({
  variables: z
    .array(dashboardVariable)
    .max(DASHBOARD_LIMITS.variables)
    .superRefine(unique(({ name }) => foldName(name), "name", "another variable has this name"))
    .default([]),
  time: timeRange.nullable().default(null).describe("The range that is shown at first; null leaves it to the reader."),
  refresh_secs: z
    .int()
    .min(refreshSecs.min)
    .max(refreshSecs.max)
    .nullable()
    .default(null)
    .describe("Seconds from one run of the queries to the next; null: they run when somebody asks."),
});

/** Each of two entries with one key is a mistake at the later one. */
function unique<T>(keyOf: (entry: T) => string | undefined, field: string, message: string) {
  return (entries: readonly T[], context: z.RefinementCtx): void => {
    const seen = new Set<string>();
    for (const [i, entry] of entries.entries()) {
      const key = keyOf(entry);
      if (key === undefined) continue;
      if (seen.has(key)) context.addIssue({ code: "custom", path: [i, field], message });
      seen.add(key);
    }
  };
}

/** Several dashboards may have one name: ids tell them apart, and names are for people. */
export const dashboardName = shortText(DASHBOARD_LIMITS.nameChars);
const description = keptText(DASHBOARD_LIMITS.descriptionChars).nullable();
const panels = z
  .array(panelInput)
  .max(DASHBOARD_LIMITS.panels)
  .superRefine(unique(({ id }) => id, "id", "another panel has this id"));

/** The id of a dashboard, as routes take it: of the form of a UUID, whatever its version. */
export const dashboardId = z.guid("is no UUID").toLowerCase();

export const newDashboard = z.strictObject({
  id: dashboardId
    .optional()
    .describe("For one that is copied from elsewhere; made where it is absent. `conflict` where a dashboard has it."),
  name: dashboardName,
  description: description.optional(),
  panels: panels.default([]),
  settings: settings.prefault({}),
});

export const dashboardChange = z.strictObject({
  name: dashboardName.optional(),
  description: description.optional().describe("Null takes it away."),
  panels: panels.optional().describe("In the place of all panels."),
  settings: settings.optional().describe("In the place of all settings."),
});

/** What versions keep. */
export const documentFields = {
  name: dashboardName,
  description,
  panels: z.array(dashboardPanel),
  settings,
};

export type NewDashboard = z.output<typeof newDashboard>;
export type DashboardChange = z.output<typeof dashboardChange>;
export type DashboardPanel = z.output<typeof dashboardPanel>;

export type DashboardDocument = {
  name: string;
  description: string | null;
  panels: readonly DashboardPanel[];
  settings: z.output<typeof settings>;
};

/** Throws `body_too_large`. */
export function documentOf(content: Omit<NewDashboard, "id">, newId: IdSource): DashboardDocument {
  const { name: called, description: about = null, panels: shown, settings: chosen } = content;
  return checkSize({ name: called, description: about, panels: shown.map(withId(newId)), settings: chosen });
}

/** What is not given stays as it is. Throws `body_too_large`. */
export function changedDocument(
  before: DashboardDocument,
  change: DashboardChange,
  newId: IdSource,
): DashboardDocument {
  return checkSize({
    name: change.name ?? before.name,
    description: change.description === undefined ? before.description : change.description,
    panels: change.panels?.map(withId(newId)) ?? before.panels,
    settings: change.settings ?? before.settings,
  });
}

const withId =
  (newId: IdSource) =>
  ({ id = newId(), ...panel }: z.output<typeof panelInput>): DashboardPanel => ({ id, ...panel });

/** Parts that come one at a time may each be within the limit of a request. */
function checkSize(document: DashboardDocument): DashboardDocument {
  const sizeBytes = Buffer.byteLength(JSON.stringify(document));
  if (sizeBytes <= DASHBOARD_LIMITS.documentBytes) return document;
  throw new EngineError(
    "body_too_large",
    `the dashboard would have ${sizeBytes} bytes; at most ${DASHBOARD_LIMITS.documentBytes} are accepted`,
  );
}

export function isSameDocument(a: DashboardDocument, b: DashboardDocument): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Those of panels and variables. What their texts name besides the database is not looked at: queries check that. */
export function queriesOf({ panels: shown, settings: { variables } }: DashboardDocument) {
  return [
    ...shown.flatMap((panel) => panel.queries),
    ...variables.flatMap((one) => (one.type === "query" ? [one.query] : [])),
  ];
}

/** Where its queries run: folded names, each once, in order. */
export function databasesOf(document: DashboardDocument): string[] {
  return [...new Set(queriesOf(document).map(({ database }) => foldName(database)))].toSorted();
}
