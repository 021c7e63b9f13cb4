/**
 * Indexes by which the snapshots are found that changed which files of a table other programs can read
 * (`Catalog.fileChanges`), without a look at all of its extents. They have no fresh extents, which are `tlm`.
 */
const indexes = (extents: string): string => `
CREATE INDEX extents_published ON ${extents} (table_id, begin_snapshot) WHERE format = 'parquet' AND format_version > 1;
CREATE INDEX extents_withdrawn ON ${extents} (table_id, end_snapshot)
  WHERE format = 'parquet' AND format_version > 1 AND end_snapshot IS NOT NULL;
`;

export const SQLITE_PUBLISHABLE_FILES = indexes("extents");
export const POSTGRES_PUBLISHABLE_FILES = indexes("engine.extents");
