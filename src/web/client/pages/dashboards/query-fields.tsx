import type { JSX } from "preact";
import { tablesOf, useSchema } from "../../base/schema.ts";
import { Combobox } from "../../components/combobox.tsx";
import { Select } from "../../components/field.tsx";
import { Editor } from "../../editor/editor.tsx";
import type { PanelQuery } from "./document.ts";

type QueryFieldsProps = { label: string; query: PanelQuery; onChange: (query: PanelQuery) => void };

/** A query of a panel or of a variable: its language, its database and its text. */
export function QueryFields({ label, query, onChange }: QueryFieldsProps): JSX.Element {
  const { data } = useSchema();
  const names = (data ?? []).map(({ name }) => name);
  const known = names.includes(query.database) ? names : [query.database, ...names];
  return (
    <div class="query-fields">
      <div class="row">
        <Select
          label={`${label}: language`}
          isLabelHidden
          value={query.language}
          options={[
            { value: "sql", title: "SQL" },
            { value: "kql", title: "KQL" },
          ]}
          onChange={(language) => onChange({ ...query, language })}
        />
        <Combobox
          label={`${label}: database`}
          isLabelHidden
          value={query.database}
          options={known.map((name) => ({ value: name, title: name }))}
          onChange={(database) => onChange({ ...query, database })}
        />
      </div>
      <Editor
        class="dashboard-editor"
        label={label}
        value={query.text}
        language={query.language}
        tables={tablesOf(data, query.database)}
        placeholder={
          query.language === "sql"
            ? "SELECT … WHERE at BETWEEN $from AND $to"
            : "table | where … | summarize count() by …"
        }
        onChange={(text) => onChange({ ...query, text })}
      />
    </div>
  );
}

export function newQuery(database: string): PanelQuery {
  return { language: "sql", text: "", database };
}
