// Package parquetexport writes a database of sessions as Parquet files, for DuckDB,
// Spark, ClickHouse and their kin: four tables, each partitioned by month (UTC) as
// Hive does,
//
//	DIR/entries/month=2026-03/data.parquet
//	DIR/messages/month=2026-03/data.parquet
//	DIR/usage/month=2026-03/data.parquet
//	DIR/tool_calls/month=2026-03/data.parquet
//
// and what has no time that can be read in month=__HIVE_DEFAULT_PARTITION__, which
// those programs take for null. The columns and their types are those of [Entry],
// [Message], [Usage] and [ToolCall]; a column that is optional is null where there is
// nothing. Files are compressed with zstd.
//
//	SELECT model, sum(cost) FROM read_parquet('DIR/usage/*/*.parquet') GROUP BY model;
//
// # Incremental
//
// A file carries the fingerprint of its rows. A run looks at all rows, but not at
// payloads, and writes the months whose fingerprint is another: what was appended,
// deleted or purged, spend that counts for another session now, a branch that was
// given up, a result that came. A month that has no rows any more goes. DIR belongs to
// one database, and holds what that holds.
//
// A file is written beside its place and moved there when it is whole and on the disk:
// a run that is killed leaves the files that it had written, and the next one goes on.
// Each file is of one moment or, where a month's entries are in very many pieces, a few;
// what changes while a run is under way is in the next one. Two runs into one folder
// take turns: the second fails with [eventlog.ErrBusy].
//
// Rows are streamed: in memory are a group of rows (16 MB of texts, with what encodes
// them about 150 MB in all, of 50,000 entries as of 200,000), and 16 bytes for each run
// of entries whose times are of one month.
package parquetexport
