/** What a dashboard may hold, and how many there may be. */
export const DASHBOARD_LIMITS = {
  /** Of an installation. The count is checked before a dashboard is made, so creations that race may pass it by a few. */
  dashboards: 10_000,
  /** Of a dashboard's document as compact JSON. */
  documentBytes: 1024 * 1024,
  /** Of a request: white space and escapes may take as much again as the document. */
  bodyBytes: 2 * 1024 * 1024,
  /** Versions that are kept, the current one among them. */
  versions: 20,
  panels: 100,
  queriesOfPanel: 4,
  variables: 50,
  valuesOfVariable: 1_000,
  columns: 24,
  /** Rows of the grid that a panel may begin at, and rows that it may span. */
  lastRow: 100_000,
  panelRows: 1_000,
  nameChars: 200,
  titleChars: 200,
  typeChars: 100,
  idChars: 100,
  descriptionChars: 2_000,
  queryChars: 65_536,
  valueChars: 1_000,
  variableNameChars: 64,
  timeChars: 64,
  refreshSecs: { min: 5, max: 86_400 },
  /** Dashboards of one page of the list. */
  listed: 100,
  /** Saves of other callers that a change without `If-Match` gives way to. */
  saveAttempts: 20,
} as const;
