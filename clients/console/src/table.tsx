import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { number } from "./format.js";
import { useParameter } from "./router.js";

/** A column of a table that its readers can sort. */
export interface Column<Row> {
  /** Name in the address. */
  name: string;
  title: string;
  value: (row: Row) => number | string | undefined;
  show?: (row: Row) => ComponentChildren;
  /** Class of a cell. */
  className?: (row: Row) => string;
  numeric?: boolean;
}

/** A table whose heads sort it; the address keeps the order. Rows without a value come last. */
export function SortableTable<Row>({
  caption,
  rows,
  columns,
  keyOf,
  parameter = "sort",
  most = 1000,
  chosen,
  onChoose,
}: {
  caption: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  keyOf: (row: Row) => string | number;
  parameter?: string;
  /** Rows that are shown at first. */
  most?: number;
  chosen?: string | number;
  onChoose?: (row: Row) => void;
}) {
  const [sort, setSort] = useParameter(parameter);
  const [all, setAll] = useState(false);
  const descending = sort.startsWith("-");
  const column = columns.find(({ name }) => name === sort.replace("-", ""));
  const sorted = column ? [...rows].sort((a, b) => compare(column.value(a), column.value(b), descending)) : rows;
  const next = ({ name, numeric }: Column<Row>) => {
    const first = numeric ? `-${name}` : name;
    return sort === first ? (numeric ? name : `-${name}`) : first;
  };
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
      <table>
        <caption>{caption}</caption>
        <thead>
          <tr>
            {columns.map((each) => (
              <th
                key={each.name}
                scope="col"
                class={each.numeric ? "numeric" : ""}
                aria-sort={each === column ? (descending ? "descending" : "ascending") : "none"}
              >
                <button type="button" class="plain" onClick={() => setSort(next(each))}>
                  {each.title}
                  {each === column ? (descending ? " ↓" : " ↑") : ""}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {sorted.slice(0, all ? undefined : most).map((row) => (
            <tr key={keyOf(row)} class={keyOf(row) === chosen ? "chosen" : ""} onClick={() => onChoose?.(row)}>
              {columns.map((each) => (
                <td key={each.name} class={`${each.numeric ? "numeric" : ""} ${each.className?.(row) ?? ""}`}>
                  {each.show ? each.show(row) : plain(each.value(row))}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {sorted.length > most && !all && (
        <button type="button" onClick={() => setAll(true)}>
          Show all {sorted.length}
        </button>
      )}
    </div>
  );
}

function plain(value: number | string | undefined): string {
  return typeof value === "string" ? value : number(value);
}

function compare(a: number | string | undefined, b: number | string | undefined, descending: boolean): number {
  if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? 1 : -1;
  const order = typeof a === "string" || typeof b === "string" ? String(a).localeCompare(String(b)) : a - b;
  return descending ? -order : order;
}

const SHORT = 120;

/** Text of any length in a cell: the beginning, and the rest on demand. */
export function Long({ text }: { text: string }) {
  if (text.length <= SHORT) return <>{text}</>;
  const end = text.lastIndexOf(" ", SHORT);
  return (
    <details class="long">
      <summary>{text.slice(0, end > 0 ? end : SHORT)} …</summary>
      {text.slice(end > 0 ? end : SHORT)}
    </details>
  );
}
