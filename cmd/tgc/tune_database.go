package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"tgc/internal/atomicfile"
	"tgc/search/database"
)

// database lists, exports or imports.
func (o *tuneFlags) database(cmd *cobra.Command) error {
	config, err := readConfig(cmd)
	if err != nil {
		return err
	}
	dir := config.DB
	if o.db != "" {
		dir = o.db
	}
	db := database.Open(dir)
	switch {
	case o.imported != "":
		f, err := os.Open(o.imported)
		if err != nil {
			return err
		}
		defer f.Close()
		n, err := db.Import(f)
		note(cmd, "%d entries imported into %s as candidates", n, dir)
		return err
	case o.export != "":
		return o.exportTo(cmd, db)
	}
	return o.listEntries(cmd, db)
}

func (o *tuneFlags) exportTo(cmd *cobra.Command, db *database.DB) error {
	f, err := atomicfile.Create(o.export)
	if err != nil {
		return err
	}
	defer f.Abort()
	n, bad, err := db.Export(f)
	if err != nil {
		return err
	}
	for _, err := range bad {
		note(cmd, "%v", err)
	}
	note(cmd, "%d entries of %s exported", n, db.Dir())
	return f.Commit()
}

func (o *tuneFlags) listEntries(cmd *cobra.Command, db *database.DB) error {
	list, bad := db.List()
	for _, err := range bad {
		note(cmd, "%v", err)
	}
	if o.json {
		if list == nil {
			list = []database.Entry{}
		}
		return printJSON(cmd, list)
	}
	rows := [][]string{{"KERNEL", "TARGET", "BEFORE US", "AFTER US", "DATE", "REASON", "PLAN"}}
	for _, e := range list {
		if e.Unproven {
			e.Reason = "a candidate from elsewhere: " + e.Reason
		}
		rows = append(rows, []string{e.Kernel, e.Target, fmt.Sprintf("%.4g", e.Before), fmt.Sprintf("%.4g", e.After), e.Date.Format(time.DateOnly), e.Reason, e.Plan + e.Decision})
	}
	return printTable(cmd.OutOrStdout(), rows)
}
