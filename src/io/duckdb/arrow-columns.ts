import {
  Binary,
  DateDay,
  Field,
  FixedSizeList,
  Float32,
  Float64,
  Int16,
  Int32,
  Int64,
  Int8,
  List,
  makeData,
  Map_,
  Struct,
  TimeMicrosecond,
  TimeNanosecond,
  TimestampMicrosecond,
  TimestampMillisecond,
  TimestampNanosecond,
  TimestampSecond,
  Uint16,
  Uint32,
  Uint64,
  Uint8,
  Utf8,
  type Data,
  type DataType,
} from "apache-arrow";
import { Growing } from "./arrow-buffers.ts";
import {
  BoolColumn,
  DecimalColumn,
  FixedColumn,
  offsetsOf,
  TextColumn,
  Validity,
  type ArrowColumn,
} from "./arrow-flat.ts";
import type { DuckDb, LogicalType, Vector } from "./duckdb.ts";

/** The Arrow columns of DuckDB's types (see `arrow-flat.ts`): the table of them, and those that hold other columns. */
type Make = (duckdb: DuckDb, type: LogicalType) => ArrowColumn;

const fixed = (width: number, arrow: () => DataType): Make => {
  return (duckdb) => new FixedColumn(duckdb, arrow(), width);
};

const COLUMNS: Partial<Record<keyof DuckDb["Type"], Make>> = {
  BOOLEAN: (duckdb) => new BoolColumn(duckdb),
  TINYINT: fixed(1, () => new Int8()),
  SMALLINT: fixed(2, () => new Int16()),
  INTEGER: fixed(4, () => new Int32()),
  BIGINT: fixed(8, () => new Int64()),
  UTINYINT: fixed(1, () => new Uint8()),
  USMALLINT: fixed(2, () => new Uint16()),
  UINTEGER: fixed(4, () => new Uint32()),
  UBIGINT: fixed(8, () => new Uint64()),
  FLOAT: fixed(4, () => new Float32()),
  DOUBLE: fixed(8, () => new Float64()),
  DATE: fixed(4, () => new DateDay()),
  TIME: fixed(8, () => new TimeMicrosecond()),
  TIME_NS: fixed(8, () => new TimeNanosecond()),
  TIMESTAMP: fixed(8, () => new TimestampMicrosecond()),
  TIMESTAMP_S: fixed(8, () => new TimestampSecond()),
  TIMESTAMP_MS: fixed(8, () => new TimestampMillisecond()),
  TIMESTAMP_TZ: fixed(8, () => new TimestampMicrosecond("UTC")),
  // This product's own timestamps: UTC always, though DuckDB has no such type with a zone.
  TIMESTAMP_NS: fixed(8, () => new TimestampNanosecond("UTC")),
  DECIMAL: (duckdb, type) => new DecimalColumn(duckdb, type),
  VARCHAR: (duckdb) => new TextColumn(duckdb, new Utf8()),
  BLOB: (duckdb) => new TextColumn(duckdb, new Binary()),
  LIST: (duckdb, type) => new ListColumn(duckdb, arrowColumn(duckdb, duckdb.list_type_child_type(type))),
  MAP: mapColumn,
  ARRAY: (duckdb, type) => new ArrayColumn(duckdb, type),
  STRUCT: structColumn,
};

/** A column for a type of DuckDB. Throws for one that Arrow has no like of; the caller casts those before. */
export function arrowColumn(duckdb: DuckDb, type: LogicalType): ArrowColumn {
  const name = duckdb.Type[duckdb.get_type_id(type)] as keyof DuckDb["Type"];
  const make = COLUMNS[name];
  if (make === undefined) throw new Error(`Arrow has no column for ${name}`);
  return make(duckdb, type);
}

class ListColumn implements ArrowColumn {
  readonly type: DataType;
  readonly #duckdb: DuckDb;
  readonly #child: ArrowColumn;
  readonly #validity = new Validity();
  readonly #offsets = new Growing();
  #childRows = 0;
  #entries = new BigUint64Array();

  constructor(duckdb: DuckDb, child: ArrowColumn, type: DataType = new List(new Field("item", child.type, true))) {
    this.#duckdb = duckdb;
    this.#child = child;
    this.type = type;
  }

  get sizeBytes(): number {
    return this.#validity.sizeBytes + this.#offsets.length + this.#child.sizeBytes;
  }

  load(vector: Vector, rows: number): void {
    const duckdb = this.#duckdb;
    this.#validity.load(duckdb, vector, rows);
    const bytes = duckdb.vector_get_data(vector, rows * 16).slice();
    this.#entries = new BigUint64Array(bytes.buffer, 0, rows * 2);
    this.#child.load(duckdb.list_vector_get_child(vector), duckdb.list_vector_get_size(vector));
  }

  append(start: number, rows: number): void {
    this.#validity.append(start, rows);
    const offsets = this.#offsets.extend(rows * 4);
    const view = new DataView(offsets.buffer, offsets.byteOffset, offsets.byteLength);
    // Lists mostly lie one behind the other: as long as they do, they are one run of the child.
    let runStart = 0;
    let runRows = 0;
    for (let i = 0; i < rows; i++) {
      const row = start + i;
      const length = this.#validity.isValid(row) ? Number(this.#entries[row * 2 + 1]) : 0;
      const from = Number(this.#entries[row * 2]);
      if (length > 0 && from !== runStart + runRows) {
        if (runRows > 0) this.#child.append(runStart, runRows);
        runStart = from;
        runRows = 0;
      }
      runRows += length;
      this.#childRows += length;
      view.setInt32(i * 4, this.#childRows, true);
    }
    if (runRows > 0) this.#child.append(runStart, runRows);
  }

  take(): Data {
    this.#childRows = 0;
    const valueOffsets = offsetsOf(this.#offsets.take());
    return makeData({ type: this.type, ...this.#validity.take(), valueOffsets, child: this.#child.take() } as never);
  }
}

/** A map is a list of key and value in both. */
function mapColumn(duckdb: DuckDb, type: LogicalType): ArrowColumn {
  const key = arrowColumn(duckdb, duckdb.map_type_key_type(type));
  const value = arrowColumn(duckdb, duckdb.map_type_value_type(type));
  const fields = [new Field("key", key.type, false), new Field("value", value.type, true)];
  const entries = new StructColumn(duckdb, fields, [key, value]);
  const map = new Map_(new Field("entries", entries.type, false) as never, false);
  return new ListColumn(duckdb, entries, map);
}

class ArrayColumn implements ArrowColumn {
  readonly type: DataType;
  readonly #duckdb: DuckDb;
  readonly #size: number;
  readonly #child: ArrowColumn;
  readonly #validity = new Validity();

  constructor(duckdb: DuckDb, type: LogicalType) {
    this.#duckdb = duckdb;
    this.#size = duckdb.array_type_array_size(type);
    this.#child = arrowColumn(duckdb, duckdb.array_type_child_type(type));
    this.type = new FixedSizeList(this.#size, new Field("item", this.#child.type, true));
  }

  get sizeBytes(): number {
    return this.#validity.sizeBytes + this.#child.sizeBytes;
  }

  load(vector: Vector, rows: number): void {
    this.#validity.load(this.#duckdb, vector, rows);
    this.#child.load(this.#duckdb.array_vector_get_child(vector), rows * this.#size);
  }

  append(start: number, rows: number): void {
    this.#validity.append(start, rows);
    this.#child.append(start * this.#size, rows * this.#size);
  }

  take(): Data {
    return makeData({ type: this.type, ...this.#validity.take(), child: this.#child.take() } as never);
  }
}

class StructColumn implements ArrowColumn {
  readonly type: Struct;
  readonly #duckdb: DuckDb;
  readonly #children: readonly ArrowColumn[];
  readonly #validity = new Validity();

  constructor(duckdb: DuckDb, fields: readonly Field[], children: readonly ArrowColumn[]) {
    this.#duckdb = duckdb;
    this.#children = children;
    this.type = new Struct([...fields]);
  }

  get sizeBytes(): number {
    return this.#children.reduce((sum, child) => sum + child.sizeBytes, this.#validity.sizeBytes);
  }

  load(vector: Vector, rows: number): void {
    this.#validity.load(this.#duckdb, vector, rows);
    for (const [i, child] of this.#children.entries())
      child.load(this.#duckdb.struct_vector_get_child(vector, i), rows);
  }

  append(start: number, rows: number): void {
    this.#validity.append(start, rows);
    for (const child of this.#children) child.append(start, rows);
  }

  take(): Data {
    const children = this.#children.map((child) => child.take());
    return makeData({ type: this.type, ...this.#validity.take(), children } as never);
  }
}

function structColumn(duckdb: DuckDb, type: LogicalType): ArrowColumn {
  const count = duckdb.struct_type_child_count(type);
  const children = Array.from({ length: count }, (_, i) => arrowColumn(duckdb, duckdb.struct_type_child_type(type, i)));
  const fields = children.map((child, i) => new Field(duckdb.struct_type_child_name(type, i), child.type, true));
  return new StructColumn(duckdb, fields, children);
}
